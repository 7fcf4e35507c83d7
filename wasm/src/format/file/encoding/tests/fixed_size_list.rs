//! Fixed-size lists: items and their validity.

use super::*;

// V9
#[test]
fn item_validity_is_in_buffers_of_its_own_outermost_first() {
    let encoding = fixed_size_list(2, true, fixed_size_list(3, true, flat(16)));
    let outer = [0b0000_1101];
    let inner = [0b1011_0111, 0b1111_1110, 0b11];
    let items = words(2, 16, 18, 1);
    let buffers: [&[u8]; 3] = [&outer, &inner, &items];
    let list = |dimension, len, validity: &[u8], items| Values::FixedSizeList {
        dimension,
        len,
        validity: Some(validity.to_vec()),
        items: Box::new(items),
    };
    let whole = list(2, 3, &outer, list(3, 6, &inner, fixed(2, &items)));
    assert_eq!(chunk(&encoding, &buffers, 3, 0..3).unwrap(), whole);
    let last = list(2, 1, &[0b00], list(3, 2, &[0b11_1111], fixed(2, &items[24..])));
    assert_eq!(chunk(&encoding, &buffers, 3, 2..3).unwrap(), last);
    is_corrupt(chunk(&encoding, &[&outer, &inner[..2], &items], 3, 0..1));
    is_corrupt(chunk(&encoding, &[&outer, &inner], 3, 0..1));

    // A row of a full-zip page has them in front, padded to bytes.
    let decoder = ValueDecoder::new(&encoding).unwrap();
    assert_eq!(decoder.fixed_bytes(), Some(1 + 1 + 12));
    let mut out = Values::for_encoding(&encoding).unwrap();
    for (row, bits) in [(0, [0b01, 0b11_0111]), (1, [0b11, 0b11_1010]), (2, [0b00, 0b11_1111])] {
        decoder.decode(&[&bits[..], &items[row * 12..row * 12 + 12]].concat(), &mut out).unwrap();
    }
    assert_eq!(out, whole);
    is_corrupt(decoder.decode(&[0; 13], &mut out));
}

// V9
#[test]
fn pages_with_and_without_item_validity_follow_each_other() {
    let items = words(1, 8, 6, 2);
    let nulls = describe(Compression::Constant(proto::Constant { value: None }));
    let plain = fixed_size_list(3, false, flat(8));
    let valid = fixed_size_list(3, true, flat(8));
    let all_null = fixed_size_list(3, true, nulls.clone());
    let mut out = Values::for_encoding(&plain).unwrap();
    decode_chunk(&plain, &[&items], 2, 0..2, &mut out).unwrap();
    decode_chunk(&valid, &[&[0b010_101], &items], 2, 0..2, &mut out).unwrap();
    decode_chunk(&all_null, &[&[0]], 1, 0..1, &mut out).unwrap();
    decode_chunk(&plain, &[&items], 2, 1..2, &mut out).unwrap();
    let expected_items = [&items[..], &items, &[0; 3], &items[3..]].concat();
    // Six valid, 1 0 1 0 1 0, three null, three valid.
    let expected_validity = vec![0b0111_1111, 0b1000_0101, 0b11];
    assert_eq!(
        out,
        Values::FixedSizeList {
            dimension: 3,
            len: 6,
            validity: Some(expected_validity),
            items: Box::new(fixed(1, &expected_items)),
        }
    );

    let mut out = Values::for_encoding(&all_null).unwrap();
    decode_chunk(&all_null, &[&[0]], 1, 0..1, &mut out).unwrap();
    let only_nulls = Values::FixedSizeList {
        dimension: 3,
        len: 1,
        validity: Some(vec![0]),
        items: Box::new(Values::Nulls { len: 3 }),
    };
    assert_eq!(out, only_nulls);
    decode_chunk(&plain, &[&items], 2, 0..1, &mut out).unwrap();
    assert_eq!(
        out,
        Values::FixedSizeList {
            dimension: 3,
            len: 2,
            validity: Some(vec![0b11_1000]),
            items: Box::new(fixed(1, &[&[0; 3], &items[..3]].concat())),
        }
    );
    assert!(Values::for_encoding(&nulls).is_err());
    assert!(Values::for_encoding(&fixed_size_list(3, false, nulls)).is_err());
}

// V9
#[test]
fn rows_side_by_side_are_the_rows_one_by_one() {
    for encoding in [
        flat(24),
        fixed_size_list(5, false, flat(32)),
        fixed_size_list(5, true, flat(32)),
        fixed_size_list(5, false, flat(1)),
        fixed_size_list(3, true, describe(Compression::Constant(proto::Constant { value: None }))),
    ] {
        let decoder = ValueDecoder::new(&encoding).unwrap();
        let width = decoder.fixed_bytes().unwrap();
        let bytes = words(1, 8, width * 7, 9);
        let mut one_by_one = Values::for_encoding(&encoding).unwrap();
        bytes.chunks(width).for_each(|row| decoder.decode(row, &mut one_by_one).unwrap());
        let mut at_once = Values::for_encoding(&encoding).unwrap();
        decoder.decode_rows(&bytes, &mut at_once).unwrap();
        assert_eq!(at_once.len(), 7);
        assert_eq!(at_once, one_by_one);
        if width > 1 {
            is_corrupt(decoder.decode_rows(&bytes[1..], &mut at_once));
        }
    }
}
