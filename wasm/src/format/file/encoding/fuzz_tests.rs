//! Bytes of a store are hostile: no decoder panics on them, and none takes more memory than they can account for.

use proptest::prelude::*;

use super::*;
use crate::format::proto::{self, BufferCompression, CompressionScheme};

/// Expansion that a decoder may reach: LZ4 and lists of bits. zstd is bounded by the count of the values or by its own size.
const RATIO: usize = 255;
/// Zeros of a block of width 0, and runs.
const SLACK: usize = 1 << 20;

fn general(scheme: CompressionScheme, values: CompressiveEncoding) -> CompressiveEncoding {
    describe(Compression::General(Box::new(proto::General {
        compression: Some(BufferCompression { scheme: scheme as i32, level: None }),
        values: Some(Box::new(values)),
    })))
}

fn fsst() -> CompressiveEncoding {
    let mut table = vec![4, 255, 0, 1, b'T', b'S', b'S', b'F'];
    table.extend_from_slice(b"abcdefgh");
    table.extend_from_slice(&[1; 24]);
    table.extend_from_slice(&[8, 1, 2, 7]);
    describe(Compression::Fsst(Box::new(proto::Fsst {
        symbol_table: table.into(),
        values: Some(Box::new(variable(32))),
    })))
}

fn encodings() -> Vec<CompressiveEncoding> {
    let null = describe(Compression::Constant(proto::Constant { value: None }));
    let mut all = vec![variable(32), variable(64), fsst(), flat(1), flat(24), flat(2400), flat(u64::MAX - 7)];
    for bits in [8, 16, 32, 64] {
        all.extend([flat(bits), inline_bitpacking(bits), rle(bits), out_of_line_bitpacking(bits, 3)]);
        all.extend([out_of_line_bitpacking(bits, 0), out_of_line_bitpacking(bits, bits as u32)]);
    }
    all.extend([
        fixed_size_list(3, true, flat(16)),
        fixed_size_list(3, false, flat(1)),
        fixed_size_list(2, true, fixed_size_list(5, true, flat(32))),
        fixed_size_list(4, true, null),
        fixed_size_list(i32::MAX as u64, true, flat(8)),
        fixed_size_list(i32::MAX as u64, false, fixed_size_list(i32::MAX as u64, true, flat(64))),
    ]);
    let plain = all.clone();
    for values in plain {
        all.push(general(CompressionScheme::Lz4, values.clone()));
        all.push(general(CompressionScheme::Zstd, values));
    }
    all
}

fn capacity(values: &Values) -> usize {
    match values {
        Values::Fixed { bytes, .. } => bytes.capacity(),
        Values::Bits { bitmap, .. } => bitmap.capacity(),
        Values::Variable { offsets, data } => offsets.capacity() * 8 + data.capacity(),
        Values::FixedSizeList { validity, items, .. } => validity.as_ref().map_or(0, Vec::capacity) + capacity(items),
        Values::Struct { fields, .. } => fields.iter().map(capacity).sum(),
        Values::Nulls { .. } => 0,
    }
}

/// Runs every decoder; what it says does not matter.
fn decode_all(encoding: &CompressiveEncoding, bytes: &[u8], count: usize, take: Range<usize>) {
    let most = bytes.len() * RATIO * 8 + SLACK;
    if let Ok(mut out) = Values::for_encoding(encoding) {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        for buffers in [&[bytes][..], &[first, second], &[first, second, bytes], &[]] {
            let _ = decode_chunk(encoding, buffers, count, take.clone(), &mut out);
        }
        assert!(capacity(&out) <= most, "{} bytes for {}", capacity(&out), bytes.len());
    }
    if let Ok(out) = decode_block(encoding, bytes, count) {
        assert_eq!(out.len(), count);
        assert!(capacity(&out) <= most, "{} bytes for {}", capacity(&out), bytes.len());
    }
    if let Ok(levels) = decode_levels(encoding, bytes, count) {
        assert_eq!(levels.len(), count);
    }
    if let Ok(decoder) = ValueDecoder::new(encoding) {
        let mut out = Values::for_encoding(encoding).unwrap();
        let size = decoder.fixed_bytes().unwrap_or(bytes.len());
        let _ = decoder.decode(bytes, &mut out);
        if let Some(stored) = bytes.get(..size)
            && decoder.decode(stored, &mut out).is_ok()
        {
            assert!(!out.is_empty());
        }
        let _ = decoder.decode_rows(bytes, &mut out);
        assert!(capacity(&out) <= most, "{} bytes for {}", capacity(&out), bytes.len());
    }
}

/// Buffers that decode, to be broken.
fn valid(kind: usize, seed: &[u8]) -> (CompressiveEncoding, Vec<u8>, usize) {
    let count = seed.len();
    let offsets: Vec<u64> = (0..=count as u64).collect();
    let words: Vec<u8> = seed.iter().flat_map(|byte| u32::from(*byte).to_le_bytes()).collect();
    let levels: Vec<u16> = seed.iter().map(|byte| u16::from(byte % 3)).collect();
    let zstd = |bytes: &[u8]| {
        let mut out = (bytes.len() as u64).to_le_bytes().to_vec();
        out.extend(ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest));
        out
    };
    match kind {
        0 => (variable(32), encode_variable_chunk(&offsets, seed, 32).unwrap(), count),
        1 => (variable(64), encode_variable_block(&offsets, seed, 64).unwrap(), count),
        2 => (inline_bitpacking(32), inline_bitpack_encode(&words, 4), count),
        3 => (out_of_line_bitpacking(32, 8), out_of_line_bitpack_encode(&words, 4, 8), count),
        4 => (rle(32), encode_rle_block(&words, 4), count),
        5 => (general_lz4(flat(32)), encode_general_lz4(&words).unwrap(), count),
        6 => (general(CompressionScheme::Zstd, flat(32)), zstd(&words), count),
        7 => (general(CompressionScheme::Zstd, variable(32)), zstd(&words), count),
        8 => (fsst(), encode_variable_chunk(&offsets, seed, 32).unwrap(), count),
        _ => {
            let (encoding, bytes) = encode_levels(&levels, true);
            (encoding, bytes, count)
        }
    }
}

fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![0..3000usize, Just(1024), Just(1 << 16), Just(u32::MAX as usize), Just(usize::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..700),
        small: bool,
        count in any_count(),
        from in any_count(),
        to in any_count(),
    ) {
        // Small numbers make offsets, widths and sizes that are almost right.
        let bytes: Vec<u8> = bytes.iter().map(|byte| if small { byte % 4 } else { *byte }).collect();
        for encoding in encodings() {
            decode_all(&encoding, &bytes, count, from..to);
            decode_all(&encoding, &bytes, count, from.min(to).min(count)..to.max(from).min(count));
            decode_all(&encoding, &bytes, bytes.len() / 4, 0..bytes.len() / 4);
        }
    }

    #[test]
    fn broken_buffers_never_panic(
        seed in prop::collection::vec(any::<u8>(), 1..1024),
        kind in 0..10usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        more in 0..3usize,
    ) {
        let (encoding, good, count) = valid(kind, &seed);
        let mut bad = good.clone();
        for (at, value) in changes {
            let at = at.index(bad.len());
            bad[at] = value;
        }
        decode_all(&encoding, &bad, count, 0..count);
        decode_all(&encoding, &good, count + more, 0..count);
        decode_all(&encoding, &good[..cut.index(good.len())], count, count / 2..count);
    }
}

#[test]
fn deeply_nested_encodings_are_refused() {
    let mut encoding = flat(8);
    for _ in 0..60 {
        encoding = fixed_size_list(1, false, encoding);
    }
    assert!(matches!(Values::for_encoding(&encoding), Err(Error::Corrupt { .. })));
    assert!(matches!(decode_block(&encoding, &[1], 1), Err(Error::Corrupt { .. })));
    assert!(ValueDecoder::new(&encoding).is_err());
    let twice = general(CompressionScheme::Zstd, general(CompressionScheme::Zstd, flat(8)));
    assert!(matches!(Values::for_encoding(&twice), Err(Error::NotSupported { .. })));
}

// V8
#[test]
fn a_zstd_bomb_stops_at_the_size_of_its_values() {
    let bomb = ruzstd::encoding::compress_to_vec(&vec![0u8; 64 << 20][..], ruzstd::encoding::CompressionLevel::Fastest);
    assert!(bomb.len() < 64 << 10);
    // Without a size in front the values' own size is the limit.
    let encoding = general(CompressionScheme::Zstd, flat(8));
    assert!(matches!(decode_block(&encoding, &bomb, 1000), Err(Error::Corrupt { .. })));
    let mut lying = 1000u64.to_le_bytes().to_vec();
    lying.extend_from_slice(&bomb);
    assert!(matches!(decode_block(&encoding, &lying, 1000), Err(Error::Corrupt { .. })));
}
