//! Values as they are: booleans by bit, others by byte.

use super::*;

// V3
#[test]
fn booleans_are_taken_from_any_bit_to_any_bit() {
    let source: Vec<u8> = words(1, 8, 40, 11);
    let mut out = Values::for_encoding(&flat(1)).unwrap();
    decode_chunk(&flat(1), &[&source], 317, 3..16, &mut out).unwrap();
    decode_chunk(&flat(1), &[&source], 317, 16..317, &mut out).unwrap();
    let Values::Bits { bitmap, len } = out else { panic!("{out:?}") };
    assert_eq!(len, 314);
    for i in 0..314 {
        assert_eq!(bitmap[i / 8] >> (i % 8) & 1, source[(i + 3) / 8] >> ((i + 3) % 8) & 1, "{i}");
    }
    is_corrupt(chunk(&flat(1), &[&source], 321, 0..1));
}

// V3
#[test]
fn flat_values_have_any_whole_number_of_bytes() {
    for width in [1, 3, 4, 16, 32, 300] {
        let bytes = words(1, 8, width * 9, 5);
        let encoding = flat(width as u64 * 8);
        assert_eq!(chunk(&encoding, &[&bytes], 9, 2..7).unwrap(), fixed(width, &bytes[2 * width..7 * width]));
        assert_eq!(decode_block(&encoding, &bytes, 9).unwrap(), fixed(width, &bytes));
        is_corrupt(chunk(&encoding, &[&bytes], 10, 0..1));
    }
    assert_eq!(Values::for_encoding(&flat(12)), Err(Error::not_supported("values of 12 bits")));
    assert_eq!(Values::for_encoding(&flat(0)), Err(Error::not_supported("values of 0 bits")));
}

// V11
#[test]
fn a_full_zip_boolean_is_a_byte() {
    let decoder = ValueDecoder::new(&flat(8)).unwrap();
    assert_eq!(decoder.fixed_bytes(), Some(1));
    let mut out = Values::Bits { bitmap: Vec::new(), len: 0 };
    for byte in [1, 0, 1, 1] {
        decoder.decode(&[byte], &mut out).unwrap();
    }
    decoder.decode_rows(&[0, 0, 0, 0, 1], &mut out).unwrap();
    assert_eq!(out, Values::Bits { bitmap: vec![0b0000_1101, 1], len: 9 });
}
