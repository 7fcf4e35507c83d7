//! Round trips of every encoding, the FastLanes order, and buffers that LanceDB wrote.

use proptest::prelude::*;

use super::lancedb_bytes as lancedb;
use super::*;
use crate::format::proto::{self, BufferCompression, CompressionScheme};

const COUNTS: [usize; 8] = [0, 1, 7, 1000, 1023, 1024, 1025, 3000];

fn chunk(encoding: &CompressiveEncoding, buffers: &[&[u8]], count: usize, take: Range<usize>) -> Result<Values> {
    let mut out = Values::for_encoding(encoding)?;
    decode_chunk(encoding, buffers, count, take, &mut out)?;
    Ok(out)
}

fn fixed(byte_width: usize, bytes: &[u8]) -> Values {
    Values::Fixed { byte_width, bytes: bytes.to_vec() }
}

fn strings(values: &[&[u8]]) -> Values {
    let mut offsets = vec![0];
    offsets.extend(values.iter().scan(0, |end, value| {
        *end += value.len() as u64;
        Some(*end)
    }));
    Values::Variable { offsets, data: values.concat() }
}

/// `count` little-endian values of `byte_width` bytes, of which the low `width` bits are random.
fn words(byte_width: usize, width: u32, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
    let mut out = Vec::new();
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(&((state ^ state >> 31) & mask).to_le_bytes()[..byte_width]);
    }
    out
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn fsst_encoding(symbols: &[&[u8]], compressed: bool) -> CompressiveEncoding {
    let header = 0x4653_5354u64 << 32 | u64::from(compressed) << 24 | 255 << 8 | symbols.len() as u64;
    let mut table = header.to_le_bytes().to_vec();
    for symbol in symbols {
        table.extend_from_slice(symbol);
        table.resize(table.len().next_multiple_of(8), 0);
    }
    table.extend(symbols.iter().map(|symbol| symbol.len() as u8));
    table.resize(2312, 0);
    describe(Compression::Fsst(Box::new(proto::Fsst {
        symbol_table: table.into(),
        values: Some(Box::new(variable(32))),
    })))
}

fn zstd_encoding(values: CompressiveEncoding) -> CompressiveEncoding {
    describe(Compression::General(Box::new(proto::General {
        compression: Some(BufferCompression { scheme: CompressionScheme::Zstd as i32, level: Some(0) }),
        values: Some(Box::new(values)),
    })))
}

fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u64).to_le_bytes().to_vec();
    out.extend(zstd_frame(bytes));
    out
}

fn is_corrupt<T: std::fmt::Debug>(result: Result<T>) {
    match result {
        Err(Error::Corrupt { .. }) => {}
        other => panic!("expected corruption, got {other:?}"),
    }
}

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
fn buffers_of_lancedb_decode() {
    let bits: Vec<u8> = (0..1024u32).map(|i| (i * i / 7 % 2) as u8).collect();
    assert_eq!(chunk(&inline_bitpacking(8), &[&hex(lancedb::BITS)], 1024, 0..1024).unwrap(), fixed(1, &bits));
    assert_eq!(inline_bitpack_encode(&bits, 1), hex(lancedb::BITS));

    let runs: Vec<u8> = (0..1024u32).flat_map(|i| (i / 300 * 100_000).to_le_bytes()).collect();
    let buffers = [&hex(lancedb::RUNS)[..], &hex(lancedb::RUN_LENGTHS)];
    assert_eq!(chunk(&rle(32), &buffers, 1024, 0..1024).unwrap(), fixed(4, &runs));
    assert_eq!(encode_rle_chunk(&runs, 4), (hex(lancedb::RUNS), hex(lancedb::RUN_LENGTHS)));

    let levels = decode_levels(&out_of_line_bitpacking(16, 1), &hex(lancedb::LEVELS), 31).unwrap();
    assert_eq!(levels[..12], [1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1]);
    let colors = decode_block(&general_lz4(variable(32)), &hex(lancedb::COLORS), 4).unwrap();
    assert_eq!(colors, strings(&[b"red", b"green", b"blue", b"a longer colour"]));
    let floats = decode_block(&general_lz4(flat(64)), &hex(lancedb::FLOATS), 3).unwrap();
    assert_eq!(floats, fixed(8, &[1.5f64, 2.5, -3.25].map(f64::to_le_bytes).concat()));

    let texts: [&[u8]; 4] = [b"x", b"", b"yz", b"longer"];
    assert_eq!(chunk(&variable(32), &[&hex(lancedb::STRINGS)], 4, 0..4).unwrap(), strings(&texts));
    let Values::Variable { offsets, data } = strings(&texts) else { panic!() };
    assert_eq!(encode_variable_chunk(&offsets, &data, 32).unwrap(), hex(lancedb::STRINGS));

    let list = fixed_size_list(3, true, flat(32));
    let items = hex(lancedb::ITEMS);
    assert_eq!(
        chunk(&list, &[&hex(lancedb::ITEM_VALIDITY), &items], 4, 1..3).unwrap(),
        Values::FixedSizeList {
            dimension: 3,
            len: 2,
            validity: Some(vec![0b11_1101]),
            items: Box::new(fixed(4, &items[12..36])),
        }
    );

    let zstd = zstd_encoding(variable(32));
    let mut out = Values::for_encoding(&zstd).unwrap();
    ValueDecoder::new(&zstd).unwrap().decode(&hex(lancedb::ZSTD), &mut out).unwrap();
    assert_eq!(out, strings(&[&b"chunk 1;".repeat(4000)]));

    let mut table = hex(lancedb::SYMBOLS);
    table.resize(2312, 0);
    let fsst = describe(Compression::Fsst(Box::new(proto::Fsst {
        symbol_table: table.into(),
        values: Some(Box::new(variable(32))),
    })));
    let mut out = Values::for_encoding(&fsst).unwrap();
    ValueDecoder::new(&fsst).unwrap().decode(&hex(lancedb::FSST), &mut out).unwrap();
    assert_eq!(out, strings(&[&b"value 0 ".repeat(40)]));
}

#[test]
fn the_width_is_that_of_the_largest_value() {
    assert_eq!(bitpack_width(&[], 4), 0);
    assert_eq!(bitpack_width(&[0, 0], 1), 0);
    assert_eq!(bitpack_width(&[5, 0, 0, 1, 1, 0], 2), 9);
    assert_eq!(bitpack_width(&u64::MAX.to_le_bytes(), 8), 64);
    assert_eq!(bitpack_width(&(-1i32).to_le_bytes(), 4), 32);
}

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
    decoder.push_null(&mut out);
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

#[test]
fn long_runs_are_several_entries() {
    let values: Vec<u8> = [vec![1; 600], vec![2; 1], vec![3; 255]].concat();
    let (runs, lengths) = encode_rle_chunk(&values, 1);
    assert_eq!((&runs[..], &lengths[..]), (&[1, 1, 1, 2, 3][..], &[255, 255, 90, 1, 255][..]));
    assert_eq!(chunk(&rle(8), &[&runs, &lengths], 856, 500..602).unwrap(), fixed(1, &values[500..602]));
    is_corrupt(chunk(&rle(8), &[&runs, &lengths], 857, 0..1));
    is_corrupt(chunk(&rle(8), &[&runs, &lengths[..4]], 601, 0..1));
    is_corrupt(chunk(&rle(8), &[&[1, 2], &[3, 0]], 3, 0..3));
    is_corrupt(chunk(&rle(8), &[&runs], 856, 0..1));
}

#[test]
fn only_the_first_buffer_of_a_compressed_chunk_is_compressed() {
    let values = [7u32.to_le_bytes().repeat(300), 9u32.to_le_bytes().repeat(4)].concat();
    let (runs, lengths) = encode_rle_chunk(&values, 4);
    let lz4 = encode_general_lz4(&runs).unwrap();
    assert_eq!(chunk(&general_lz4(rle(32)), &[&lz4, &lengths], 304, 0..304).unwrap(), fixed(4, &values));
    let packed = zstd(&runs);
    assert_eq!(chunk(&zstd_encoding(rle(32)), &[&packed, &lengths], 304, 299..304).unwrap(), fixed(4, &values[1196..]));
}

#[test]
fn a_compressed_size_that_lies_is_corrupt() {
    let plain = [5u8; 4000];
    for (encoding, good, at) in
        [(general_lz4(flat(8)), encode_general_lz4(&plain).unwrap(), 4), (zstd_encoding(flat(8)), zstd(&plain), 8)]
    {
        assert_eq!(decode_block(&encoding, &good, 4000).unwrap(), fixed(1, &plain));
        for size in [0u64, 3999, 4001, u64::from(u32::MAX), 1 << 31] {
            let mut bad = good.clone();
            bad[..at].copy_from_slice(&size.to_le_bytes()[..at]);
            is_corrupt(decode_block(&encoding, &bad, 4000));
        }
        // More than the values can need.
        is_corrupt(decode_block(&encoding, &good, 3999));
        is_corrupt(decode_block(&encoding, &good[..at - 1], 4000));
        is_corrupt(decode_block(&encoding, &good[..good.len() - 1], 4000));
    }
}

#[test]
fn zstd_may_be_several_frames_and_lack_the_size() {
    let encoding = zstd_encoding(variable(32));
    let decoder = ValueDecoder::new(&encoding).unwrap();
    let mut out = Values::for_encoding(&encoding).unwrap();
    let mut two = 11u64.to_le_bytes().to_vec();
    two.extend(zstd_frame(b"first "));
    two.extend(zstd_frame(b"again"));
    decoder.decode(&two, &mut out).unwrap();
    decoder.decode(&zstd_frame(b"bare"), &mut out).unwrap();
    decoder.decode(&[], &mut out).unwrap();
    decoder.decode(&zstd(&b"long ".repeat(100_000)), &mut out).unwrap();
    assert_eq!(out, strings(&[b"first again", b"bare", b"", &b"long ".repeat(100_000)]));
}

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

#[test]
fn unknown_encodings_are_named() {
    for (compression, name) in [
        (Compression::PackedStruct(Box::default()), "packed struct encoding"),
        (Compression::VariablePackedStruct(proto::VariablePackedStruct::default()), "variable packed struct encoding"),
        (Compression::Range(proto::Opaque {}), "range encoding"),
        (Compression::Delta(proto::Opaque {}), "delta encoding"),
    ] {
        let encoding = describe(compression);
        let error = Error::not_supported(name);
        assert_eq!(Values::for_encoding(&encoding), Err(error.clone()));
        assert_eq!(chunk(&general_lz4(encoding.clone()), &[&[0; 8]], 1, 0..1), Err(error.clone()));
        assert_eq!(decode_block(&encoding, &[0; 8], 1), Err(error.clone()));
        assert_eq!(ValueDecoder::new(&encoding).err(), Some(error));
    }
    let compressed = Some(BufferCompression { scheme: 1, level: None });
    for encoding in [
        Compression::Flat(proto::Flat { bits_per_value: 8, data: compressed.clone() }),
        Compression::InlineBitpacking(proto::InlineBitpacking {
            uncompressed_bits_per_value: 8,
            values: compressed.clone(),
        }),
        Compression::Variable(Box::new(proto::Variable { offsets: Some(Box::new(flat(32))), values: compressed })),
    ] {
        let error = chunk(&describe(encoding), &[&[0; 64]], 1, 0..1).unwrap_err();
        assert!(error.to_string().contains("buffer compression inside"), "{error}");
    }
}

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

#[test]
fn levels_take_their_smallest_form() {
    let form = |levels: &[u16], allow_rle| encode_levels(levels, allow_rle).0;
    let alternating = |n: usize| -> Vec<u16> { (0..n).map(|i| (i % 2) as u16).collect() };
    assert_eq!(form(&[], true), flat(16));
    assert_eq!(form(&[0, 1, 0], true), flat(16));
    assert_eq!(form(&alternating(1000), true), out_of_line_bitpacking(16, 1));
    assert_eq!(form(&alternating(4096), true), out_of_line_bitpacking(16, 1));
    assert_eq!(form(&[3; 4096], true), rle(16));
    assert_eq!(form(&[3; 4096], false), out_of_line_bitpacking(16, 2));
    assert_eq!(form(&[0; 1000], false), inline_bitpacking(16));
    assert_eq!(encode_levels(&[0; 4096], true).1.len(), 8 + 17 * 3);
    // One description for all chunks: 2 bits, though the first needs one.
    let (encoding, blocks) = encode_level_chunks(&[&alternating(2048), &[2, 1, 2], &[]], true);
    assert_eq!(encoding, out_of_line_bitpacking(16, 2));
    assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [512, 6, 0]);
    assert_eq!(decode_levels(&encoding, &blocks[1], 3).unwrap(), [2, 1, 2]);
    // Runs would be shorter in all, but those of the first chunk are longer than a chunk can say.
    let noise: Vec<u16> = (0..30_000u32).map(|i| (i * 40_503 % 32_768) as u16).collect();
    let mut chunks = vec![&noise[..]];
    chunks.extend([&[1; 4096][..]; 50]);
    assert_eq!(encode_level_chunks(&chunks, true).0, out_of_line_bitpacking(16, 15));
    is_corrupt(decode_levels(&flat(32), &[0; 8], 2));
    is_corrupt(decode_levels(&variable(32), &[0; 64], 0));
}

proptest! {
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

    #[test]
    fn runs_come_back(
        byte_width in prop::sample::select(vec![1usize, 2, 4, 8]),
        runs in prop::collection::vec((any::<u64>(), 1..700usize), 0..12),
        compress: bool,
    ) {
        let values: Vec<u8> =
            runs.iter().flat_map(|(value, n)| value.to_le_bytes()[..byte_width].repeat(*n)).collect();
        let count = values.len() / byte_width;
        let bits = byte_width as u64 * 8;
        let (mut first, lengths) = encode_rle_chunk(&values, byte_width);
        let mut block = encode_rle_block(&values, byte_width);
        let mut encoding = rle(bits);
        if compress {
            (first, block) = (encode_general_lz4(&first).unwrap(), encode_general_lz4(&block).unwrap());
            encoding = general_lz4(encoding);
        }
        let (from, to) = (count / 3, count - count / 4);
        let taken = fixed(byte_width, &values[from * byte_width..to * byte_width]);
        prop_assert_eq!(chunk(&encoding, &[&first, &lengths], count, from..to).unwrap(), taken);
        prop_assert_eq!(decode_block(&encoding, &block, count).unwrap(), fixed(byte_width, &values));
    }

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

    #[test]
    fn levels_come_back(
        runs in prop::collection::vec((0..4u16, 1..900usize), 0..20),
        noise in prop::collection::vec(0..4u16, 0..1100),
        allow_rle: bool,
    ) {
        let mut levels: Vec<u16> = runs.iter().flat_map(|(level, n)| vec![*level; *n]).collect();
        levels.extend(noise);
        let (encoding, bytes) = encode_levels(&levels, allow_rle);
        prop_assert!(bytes.len() <= levels.len() * 2);
        prop_assert_eq!(decode_levels(&encoding, &bytes, levels.len()).unwrap(), levels);
    }
}
