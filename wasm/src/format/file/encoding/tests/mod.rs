//! Round trips of every encoding, and buffers that LanceDB wrote.

mod bitpack;
mod fixed_size_list;
mod flat;
mod fsst;
mod general;
mod levels;
mod rle;
mod variable;

use super::lancedb_bytes as lancedb;
use super::*;
use crate::format::proto::{self, BufferCompression, CompressionScheme};

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

fn is_corrupt<T: std::fmt::Debug>(result: Result<T>) {
    match result {
        Err(Error::Corrupt { .. }) => {}
        other => panic!("expected corruption, got {other:?}"),
    }
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
fn unknown_encodings_are_named() {
    for (compression, name) in [
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
