//! Offsets and bytes.

use proptest::prelude::*;

use super::*;

// V5
#[test]
fn variable_values_end_at_the_last_offset_not_at_the_padding() {
    let values: [&[u8]; 5] = [b"x", b"yz", b"w", b"", b"q"];
    let Values::Variable { offsets, data } = strings(&values) else { panic!() };
    // The chunk of the worked example of the format: 0x18 is 6 offsets of 4 bytes.
    let chunk_bytes = encode_variable_chunk(&offsets, &data, 32).unwrap();
    let expected = hex("18000000 19000000 1b000000 1c000000 1c000000 1d000000 78797a7771 484848");
    assert_eq!(chunk_bytes, expected);
    assert_eq!(chunk(&variable(32), &[&chunk_bytes], 5, 1..4).unwrap(), strings(&values[1..4]));
    let block = encode_variable_block(&offsets, &data, 32).unwrap();
    assert_eq!(block[..12], hex("20000000 20000000 00000000"));
    assert_eq!(block.len(), 32 + 5);
    let wide = encode_variable_block(&offsets, &data, 64).unwrap();
    assert_eq!(wide[..24], hex("4000000000000000 4000000000000000 0000000000000000"));
    assert_eq!(decode_block(&variable(64), &wide, 5).unwrap(), strings(&values));
    is_corrupt(decode_block(&variable(32), &wide, 5));
}

#[test]
fn variable_slices_are_written_from_their_own_start() {
    let Values::Variable { offsets, data } = strings(&[b"left out", b"a", b"bcd", b"not this"]) else { panic!() };
    let bytes = encode_variable_chunk(&offsets[1..4], &data, 64).unwrap();
    assert_eq!(chunk(&variable(64), &[&bytes], 2, 0..2).unwrap(), strings(&[b"a", b"bcd"]));
    assert!(encode_variable_chunk(&[3, 2], &data, 32).is_err());
    assert!(encode_variable_block(&[0, 99], &data, 32).is_err());
}

#[test]
fn variable_offsets_that_fall_or_leave_the_buffer_are_corrupt() {
    let good = hex("0c000000 0d000000 0e000000 6162");
    assert_eq!(chunk(&variable(32), &[&good], 2, 0..2).unwrap(), strings(&[b"a", b"b"]));
    for (at, value) in [(0, 0x0b), (0, 0x0e), (4, 0x0f), (8, 0x0f), (4, 0x0b)] {
        let mut bad = good.clone();
        bad[at] = value;
        is_corrupt(chunk(&variable(32), &[&bad], 2, 0..2));
        let fsst = fsst_encoding(&[b"a"], false);
        is_corrupt(chunk(&fsst, &[&bad], 2, 0..2));
    }
    is_corrupt(chunk(&variable(32), &[&good], 4, 0..1));
}

proptest! {
    // V5
    #[test]
    fn variable_values_come_back(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..60),
        bits in prop::sample::select(vec![32u64, 64]),
    ) {
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let Values::Variable { offsets, data } = strings(&values) else { unreachable!() };
        let (n, encoding) = (values.len(), variable(bits));
        let bytes = encode_variable_chunk(&offsets, &data, bits).unwrap();
        prop_assert_eq!(bytes.len() % (bits as usize / 8), 0);
        prop_assert_eq!(chunk(&encoding, &[&bytes], n, n / 3..n).unwrap(), strings(&values[n / 3..]));
        let block = encode_variable_block(&offsets, &data, bits).unwrap();
        prop_assert_eq!(decode_block(&encoding, &block, n).unwrap(), strings(&values));
        let lz4 = encode_general_lz4(&block).unwrap();
        prop_assert_eq!(decode_block(&general_lz4(encoding.clone()), &lz4, n).unwrap(), strings(&values));
        let packed = zstd(&bytes);
        prop_assert_eq!(chunk(&zstd_encoding(encoding), &[&packed], n, 0..n).unwrap(), strings(&values));
    }
}
