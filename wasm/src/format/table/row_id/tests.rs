use super::*;

fn built(runs: &[Range<u64>]) -> RowIdsBuilder {
    let mut builder = RowIdsBuilder::default();
    runs.iter().for_each(|run| builder.push(run.clone()));
    builder
}

fn all(ids: &RowIds, positions: Range<u64>) -> Vec<u64> {
    let mut found = Vec::new();
    ids.runs(positions, &mut |run| found.extend(run));
    found
}

/// One segment with a sequence's framing: field 1, length.
fn sequence(segment: &[u8]) -> Vec<u8> {
    [&[0x0a, segment.len() as u8], segment].concat()
}

fn forms(bytes: &[u8]) -> String {
    let sequence = RowIdSequence::decode(bytes).unwrap();
    let form = |segment: U64Segment| match segment.segment.unwrap() {
        ProtoSegment::Range(_) => 'r',
        ProtoSegment::RangeWithHoles(_) => 'h',
        ProtoSegment::RangeWithBitmap(_) => 'b',
        ProtoSegment::SortedArray(_) => 's',
        ProtoSegment::Array(_) => 'a',
    };
    sequence.segments.into_iter().map(form).collect()
}

/// What LanceDB wrote after a create, an update, an upsert and a compaction.
#[test]
fn t28_sequences_of_lancedb_are_read() {
    let range = sequence(&[0x0a, 0x02, 0x10, 10]);
    assert_eq!(all(&RowIds::decode(&range).unwrap(), 0..10), Vec::from_iter(0..10));
    let bitmap = sequence(&[0x1a, 0x08, 0x08, 3, 0x10, 12, 0x1a, 2, 0x05, 0x01]);
    assert_eq!(all(&RowIds::decode(&bitmap).unwrap(), 0..3), [3, 5, 11]);
    let array = sequence(&[0x2a, 14, 0x0a, 12, 0x08, 2, 0x12, 8, 2, 0, 0, 0, 12, 0, 13, 0]);
    assert_eq!(all(&RowIds::decode(&array).unwrap(), 0..4), [4, 2, 14, 15]);
    let compacted = [range, bitmap, array].concat();
    let ids = RowIds::decode(&compacted).unwrap();
    assert_eq!(ids.len(), 17);
    assert_eq!(all(&ids, 8..15), [8, 9, 3, 5, 11, 4, 2]);
}

#[test]
fn t28_bits_count_from_the_lowest_one() {
    let bytes = sequence(&[0x1a, 0x07, 0x08, 2, 0x10, 7, 0x1a, 1, 0x11]);
    assert_eq!(all(&RowIds::decode(&bytes).unwrap(), 0..9), [2, 6]);
}

#[test]
fn t28_arrays_of_every_width_are_read() {
    let u32s = sequence(&[0x22, 14, 0x12, 12, 0x08, 7, 0x12, 8, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(all(&RowIds::decode(&u32s).unwrap(), 0..2), [7, 65_543]);
    let u64s = sequence(&[0x2a, 20, 0x1a, 18, 0x12, 16, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(all(&RowIds::decode(&u64s).unwrap(), 0..2), [1 << 56, 5]);
}

#[test]
fn t28_holes_are_left_out() {
    // 10..20 without 10, 13 and 14.
    let bytes = sequence(&[0x12, 16, 0x08, 10, 0x10, 20, 0x1a, 10, 0x0a, 8, 0x12, 6, 10, 0, 13, 0, 14, 0]);
    let ids = RowIds::decode(&bytes).unwrap();
    assert_eq!(all(&ids, 0..7), [11, 12, 15, 16, 17, 18, 19]);
    for from in 0..7 {
        assert_eq!(
            all(&ids, from..from + 2),
            all(&ids, 0..7).into_iter().skip(from as usize).take(2).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_form_is_chosen_by_its_size() {
    let cases: [(&[Range<u64>], &str); 9] = [
        (&[5..9, 9..12], "r"),
        (&[0..1000, 1001..5000], "h"),
        (&[3..4, 5..6, 11..12], "b"),
        (&[0..1, 60_000..60_001], "s"),
        (&[0..1, 1 << 40..(1 << 40) + 2], "s"),
        (&[4..5, 2..3, 14..16], "a"),
        (&[100..400, 3..4, 2..3, 1..2], "ra"),
        (&[100..400, 50..90], "rr"),
        (&[], ""),
    ];
    for (runs, expected) in cases {
        let bytes = built(runs).encode();
        assert_eq!(forms(&bytes), expected, "{runs:?}");
        let ids = RowIds::decode(&bytes).unwrap();
        let expected: Vec<u64> = runs.iter().cloned().flatten().collect();
        assert_eq!(all(&ids, 0..expected.len() as u64), expected);
    }
}

#[test]
fn a_bitmap_over_many_blocks_is_walked_from_any_position() {
    let ids: Vec<u64> = (0..6000).filter(|id| id % 3 != 1).map(|id| id + 77).collect();
    let mut builder = RowIdsBuilder::default();
    ids.iter().for_each(|id| builder.push(*id..*id + 1));
    let bytes = builder.encode();
    assert_eq!(forms(&bytes), "b");
    let decoded = RowIds::decode(&bytes).unwrap();
    for from in [0, 1, 511, 512, 513, 2000, 3999] {
        assert_eq!(all(&decoded, from as u64..from as u64 + 5), ids[from..(from + 5).min(ids.len())]);
    }
}

#[test]
fn rows_are_taken_from_the_front() {
    let mut builder = built(&[0..4, 10..14, 2..3]);
    let front = builder.take_front(6);
    assert_eq!((front.len(), builder.len()), (6, 3));
    assert_eq!(all(&RowIds::decode(&front.encode()).unwrap(), 0..9), [0, 1, 2, 3, 10, 11]);
    assert_eq!(all(&RowIds::decode(&builder.encode()).unwrap(), 0..9), [12, 13, 2]);
}

#[test]
fn a_huge_range_takes_no_memory_and_is_refused() {
    let bytes = sequence(&[0x0a, 0x0a, 0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]);
    let error = RowIds::decode(&bytes).unwrap_err();
    assert!(error.to_string().contains("more row ids than a fragment has rows"), "{error}");
}

#[test]
fn broken_segments_are_corrupt() {
    let cases: [(&[u8], &str); 8] = [
        (&[], "without a form"),
        (&[0x0a, 0x02, 0x08, 10], "row ids from 10 to 0"),
        (&[0x1a, 0x07, 0x08, 2, 0x10, 11, 0x1a, 1, 0x11], "a bitmap of 1 bytes for 9 row ids"),
        (&[0x12, 12, 0x08, 10, 0x10, 20, 0x1a, 6, 0x0a, 4, 0x12, 2, 20, 0], "holes"),
        (&[0x12, 14, 0x08, 10, 0x10, 20, 0x1a, 8, 0x0a, 6, 0x12, 4, 12, 0, 11, 0], "holes"),
        (&[0x22, 8, 0x0a, 6, 0x12, 4, 5, 0, 5, 0], "not ascending"),
        (&[0x2a, 5, 0x0a, 3, 0x12, 1, 5], "1 bytes of row ids of 2 bytes each"),
        (
            &[0x2a, 17, 0x0a, 15, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x12, 2, 1, 0],
            "behind 2^64",
        ),
    ];
    for (segment, reason) in cases {
        let error = RowIds::decode(&sequence(segment)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}: {reason}");
    }
    assert!(RowIds::decode(&[0x0a, 0x7f]).is_err());
}
