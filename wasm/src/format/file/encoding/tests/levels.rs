//! Levels as blocks.

use proptest::prelude::*;

use super::*;

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
    // L8
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
