//! Runs.

use proptest::prelude::*;

use super::*;

// V4
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

// V4
#[test]
fn only_the_first_buffer_of_a_compressed_chunk_is_compressed() {
    let values = [7u32.to_le_bytes().repeat(300), 9u32.to_le_bytes().repeat(4)].concat();
    let (runs, lengths) = encode_rle_chunk(&values, 4);
    let lz4 = encode_general_lz4(&runs).unwrap();
    assert_eq!(chunk(&general_lz4(rle(32)), &[&lz4, &lengths], 304, 0..304).unwrap(), fixed(4, &values));
    let packed = zstd(&runs);
    assert_eq!(chunk(&zstd_encoding(rle(32)), &[&packed, &lengths], 304, 299..304).unwrap(), fixed(4, &values[1196..]));
}

proptest! {
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
}
