//! LZ4 and zstd around another encoding.

use super::*;

// V8
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

// V8
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
