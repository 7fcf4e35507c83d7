//! FastLanes bit packing.

use proptest::prelude::*;

use super::*;

const COUNTS: [usize; 8] = [0, 1, 7, 1000, 1023, 1024, 1025, 3000];

/// The position of value `i` in a block, from the definition: word index and bit of the lane stream.
fn naive_unpack(packed: &[u8], byte_width: usize, width: usize) -> Vec<u64> {
    let t = byte_width * 8;
    let lanes = 1024 / t;
    let order = [0, 4, 2, 6, 1, 5, 3, 7];
    let mut out = vec![0; 1024];
    for lane in 0..lanes {
        for row in 0..t {
            let mut value = 0u64;
            for bit in 0..width {
                let at = row * width + bit;
                let byte = (at / t * lanes + lane) * byte_width + at % t / 8;
                value |= u64::from(packed[byte] >> (at % 8) & 1) << bit;
            }
            out[order[row / 8] * 16 + row % 8 * 128 + lane] = value;
        }
    }
    out
}

// V1, V2
#[test]
fn blocks_are_in_fastlanes_order_at_every_width() {
    for byte_width in [1, 2, 4, 8] {
        for width in 0..=byte_width as u32 * 8 {
            let values = words(byte_width, width, 1024, 7 + u64::from(width));
            let packed = out_of_line_bitpack_encode(&values, byte_width, width);
            assert_eq!(packed.len(), packed_bytes(width));
            let naive: Vec<u8> = naive_unpack(&packed, byte_width, width as usize)
                .iter()
                .flat_map(|value| value.to_le_bytes()[..byte_width].to_vec())
                .collect();
            assert_eq!(naive, values, "{byte_width} bytes, width {width}");
            let encoding = out_of_line_bitpacking(byte_width as u64 * 8, width);
            assert_eq!(decode_block(&encoding, &packed, 1024).unwrap(), fixed(byte_width, &values));
        }
    }
}

#[test]
fn the_width_is_that_of_the_largest_value() {
    assert_eq!(bitpack_width(&[], 4), 0);
    assert_eq!(bitpack_width(&[0, 0], 1), 0);
    assert_eq!(bitpack_width(&[5, 0, 0, 1, 1, 0], 2), 9);
    assert_eq!(bitpack_width(&u64::MAX.to_le_bytes(), 8), 64);
    assert_eq!(bitpack_width(&(-1i32).to_le_bytes(), 4), 32);
}

// L8
#[test]
fn a_short_rest_out_of_line_is_packed_only_if_that_is_shorter() {
    // 128 bytes a block of 1 bit; 64 words of 2 bytes are as long and stay words.
    for (rest, bytes) in [(1, 2), (63, 126), (64, 128), (65, 128), (1023, 128)] {
        let values = words(2, 1, 1024 + rest, 3);
        let packed = out_of_line_bitpack_encode(&values, 2, 1);
        assert_eq!(packed.len(), 128 + bytes, "{rest}");
        assert_eq!(decode_block(&out_of_line_bitpacking(16, 1), &packed, 1024 + rest).unwrap(), fixed(2, &values));
    }
}

#[test]
fn bitpacked_chunks_of_more_than_a_block_or_a_word_are_corrupt() {
    let mut bytes = inline_bitpack_encode(&words(4, 5, 1024, 1), 4);
    is_corrupt(chunk(&inline_bitpacking(32), &[&bytes], 1025, 0..1));
    is_corrupt(chunk(&inline_bitpacking(32), &[&bytes[..643]], 1024, 0..1));
    bytes[0] = 33;
    is_corrupt(chunk(&inline_bitpacking(32), &[&bytes], 1024, 0..1));
    bytes[..4].copy_from_slice(&[0, 1, 0, 0]);
    is_corrupt(chunk(&inline_bitpacking(32), &[&bytes], 1024, 0..1));
    is_corrupt(decode_block(&out_of_line_bitpacking(16, 0), &[], usize::MAX));
    is_corrupt(decode_block(&out_of_line_bitpacking(16, 17), &[0; 4096], 1024));
}

proptest! {
    // V1, V2
    #[test]
    fn bitpacked_values_come_back(
        byte_width in prop::sample::select(vec![1usize, 2, 4, 8]),
        width in 0..=64u32,
        count in prop::sample::select(COUNTS.to_vec()),
        seed: u64,
    ) {
        let width = width % (byte_width as u32 * 8 + 1);
        let values = words(byte_width, width, count, seed);
        let block = out_of_line_bitpack_encode(&values, byte_width, width);
        let encoding = out_of_line_bitpacking(byte_width as u64 * 8, width);
        prop_assert_eq!(decode_block(&encoding, &block, count).unwrap(), fixed(byte_width, &values));

        let count = count.min(1024);
        let values = &values[..count * byte_width];
        let bytes = inline_bitpack_encode(values, byte_width);
        prop_assert_eq!(bytes.len(), byte_width + packed_bytes(bitpack_width(values, byte_width)));
        let encoding = inline_bitpacking(byte_width as u64 * 8);
        let (from, to) = (count / 3, count - count / 4);
        let taken = fixed(byte_width, &values[from * byte_width..to * byte_width]);
        prop_assert_eq!(chunk(&encoding, &[&bytes], count, from..to).unwrap(), taken);
        prop_assert_eq!(decode_block(&encoding, &bytes, count).unwrap(), fixed(byte_width, values));
    }
}

#[test]
fn a_few_values_are_picked_as_the_whole_block_has_them() {
    for byte_width in [1, 2, 4, 8] {
        for width in 0..=byte_width as u32 * 8 {
            let values = words(byte_width, width, 1024, 11 + u64::from(width));
            let packed = inline_bitpack_encode(&values, byte_width);
            let encoding = inline_bitpacking(byte_width as u64 * 8);
            for start in (0..1024).step_by(13) {
                let take = start..(start + 16).min(1024);
                let mut out = Values::for_encoding(&encoding).unwrap();
                decode_chunk(&encoding, &[&packed], 1024, take.clone(), &mut out).unwrap();
                let expected = &values[take.start * byte_width..take.end * byte_width];
                assert_eq!(out, fixed(byte_width, expected), "{byte_width} bytes, width {width}, {take:?}");
            }
        }
    }
}
