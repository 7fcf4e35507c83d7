//! FSST: symbols, escapes, symbol tables.

use super::*;

// V6
#[test]
fn symbols_and_escapes_decode_and_others_are_corrupt() {
    let encoding = fsst_encoding(&[b"ab", b"12345678", b"x"], true);
    let stored: [&[u8]; 4] = [&[0, 1, 255, b'!'], &[], &[2, 2, 255, 255, 255, 0], &[1]];
    let plain: [&[u8]; 4] = [b"ab12345678!", b"", b"xx\xff\0", b"12345678"];
    let Values::Variable { offsets, data } = strings(&stored) else { panic!() };
    let bytes = encode_variable_chunk(&offsets, &data, 32).unwrap();
    assert_eq!(chunk(&encoding, &[&bytes], 4, 0..4).unwrap(), strings(&plain));
    assert_eq!(chunk(&encoding, &[&bytes], 4, 2..4).unwrap(), strings(&plain[2..]));
    let decoder = ValueDecoder::new(&encoding).unwrap();
    let mut out = Values::for_encoding(&encoding).unwrap();
    stored.iter().for_each(|value| decoder.decode(value, &mut out).unwrap());
    decoder.push_null(&mut out).unwrap();
    assert_eq!(out, strings(&[plain[0], plain[1], plain[2], plain[3], b""]));
    is_corrupt(decoder.decode(&[3], &mut out));
    is_corrupt(decoder.decode(&[0, 255], &mut out));
}

#[test]
fn a_long_fsst_value_passes_the_scratch_buffer_whole() {
    let encoding = fsst_encoding(&[b"1234567", b"z"], true);
    let decoder = ValueDecoder::new(&encoding).unwrap();
    let mut out = Values::for_encoding(&encoding).unwrap();
    let codes: Vec<u8> =
        (0..5000).flat_map(|i| if i % 3 == 0 { vec![255, b'e'] } else { vec![(i % 2) as u8] }).collect();
    decoder.decode(&codes, &mut out).unwrap();
    let mut plain = Vec::new();
    for i in 0..5000 {
        plain.extend_from_slice(if i % 3 == 0 {
            b"e"
        } else if i % 2 == 0 {
            b"1234567"
        } else {
            b"z"
        });
    }
    assert_eq!(out, strings(&[&plain]));
}

// V6
#[test]
fn a_symbol_table_that_is_not_compressed_stores_values_as_they_are() {
    let encoding = fsst_encoding(&[], false);
    let mut out = Values::for_encoding(&encoding).unwrap();
    ValueDecoder::new(&encoding).unwrap().decode(b"plain \xff", &mut out).unwrap();
    assert_eq!(out, strings(&[b"plain \xff"]));
}

#[test]
fn broken_symbol_tables_are_corrupt() {
    let Some(Compression::Fsst(good)) = fsst_encoding(&[b"ab"], true).compression else { panic!() };
    let broken = |at: usize, value: u8, len: usize| {
        let mut table = good.symbol_table.to_vec();
        table[at] = value;
        table.truncate(len);
        describe(Compression::Fsst(Box::new(proto::Fsst { symbol_table: table.into(), values: good.values.clone() })))
    };
    assert!(Values::for_encoding(&broken(0, 1, 2312)).is_ok());
    // Magic, a symbol of 0 and of 9 bytes, a table that is cut.
    for encoding in [broken(7, 0, 2312), broken(16, 0, 2312), broken(16, 9, 2312), broken(0, 200, 100), broken(0, 0, 7)]
    {
        is_corrupt(Values::for_encoding(&encoding));
    }
}
