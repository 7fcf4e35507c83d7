use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int32Array, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use prost::Message;

use super::levels_build::{LeafPath, Levels};
use super::page_build::PageBuilder;
use super::page_encode::EncodedPage;
use crate::format::file::FileVersion;
use crate::format::proto::page_layout::Layout;
use crate::format::table::Schema;

fn paths(array: &ArrayRef) -> Vec<LeafPath> {
    let field = ArrowField::new("c", array.data_type().clone(), true);
    LeafPath::all_of(&Schema::from_arrow(&ArrowSchema::new(vec![field])).unwrap()).unwrap()
}

fn levels(array: &ArrayRef) -> Levels {
    let path = &paths(array)[0];
    path.levels(&path.resolve(array).unwrap(), 0..array.len(), 0).unwrap()
}

fn pages(array: &ArrayRef, version: FileVersion) -> Vec<EncodedPage> {
    let mut builder = PageBuilder::new(paths(array)[0].clone(), version);
    let arrays = builder.resolve(array).unwrap();
    let (mut pages, mut row) = (Vec::new(), 0);
    while row < array.len() {
        let (taken, full) = builder.take(&arrays, row..array.len(), row as u64).unwrap();
        row += taken;
        pages.extend(full);
    }
    pages.extend(builder.flush().unwrap());
    pages
}

/// `[["x", "yz"], [], null, ["w", null, "q"]]`.
fn worked_example() -> ArrayRef {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("x"), Some("yz")]);
    list.append_value([] as [Option<&str>; 0]);
    list.append_null();
    list.append_value([Some("w"), None, Some("q")]);
    Arc::new(list.finish())
}

fn int_lists(ends: Vec<i32>, nulls: Option<Vec<bool>>) -> ListArray {
    let items = Int32Array::from_iter_values(0..ends[ends.len() - 1]);
    let item = Arc::new(ArrowField::new("item", DataType::Int32, true));
    ListArray::new(item, OffsetBuffer::new(ends.into()), Arc::new(items), nulls.map(NullBuffer::from))
}

/// Number of values of each chunk but the last, and number of levels of every chunk.
fn chunks(page: &EncodedPage) -> (Vec<u32>, Vec<u16>) {
    let words: Vec<_> = page.buffers[0].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (mut start, mut level_counts) = (0, Vec::new());
    for word in &words {
        level_counts.push(u16::from_le_bytes([page.buffers[1][start], page.buffers[1][start + 1]]));
        start += ((word >> 4) as usize + 1) * 8;
    }
    assert_eq!(start, page.buffers[1].len());
    (words[..words.len() - 1].iter().map(|word| 1 << (word & 15)).collect(), level_counts)
}

#[test]
fn levels_tell_null_items_null_lists_and_empty_lists_apart() {
    let levels = levels(&worked_example());
    assert_eq!(levels.rep, [1, 0, 1, 1, 1, 0, 0]);
    assert_eq!(levels.def, [0, 0, 3, 2, 0, 1, 0]);
}

#[test]
fn nested_lists_begin_anew_at_their_rank() {
    let inner = int_lists(vec![0, 2, 3, 3, 4], None);
    let item = Arc::new(ArrowField::new("item", inner.data_type().clone(), true));
    let outer: ArrayRef =
        Arc::new(ListArray::new(item, OffsetBuffer::new(vec![0, 3, 3, 4].into()), Arc::new(inner), None));
    let levels = levels(&outer);
    assert_eq!(levels.rep, [2, 0, 1, 1, 2, 2]);
    // 3 is an empty inner list, 5 an empty outer one.
    assert_eq!(levels.def, [0, 0, 0, 3, 5, 0]);
    assert_eq!(levels.slots, [0, 1, 2, 3, 0, 3]);
}

#[test]
fn what_lies_under_a_null_list_or_struct_is_left_out() {
    let lists = int_lists(vec![0, 2, 4, 5], Some(vec![true, false, true]));
    let member = Arc::new(ArrowField::new("l", lists.data_type().clone(), true));
    let nulls = NullBuffer::from(vec![true, true, false]);
    let structs: ArrayRef = Arc::new(StructArray::new(vec![member].into(), vec![Arc::new(lists)], Some(nulls)));
    let levels = levels(&structs);
    assert_eq!(levels.def, [0, 0, 2, 4]);
    assert_eq!(levels.slots[..2], [0, 1]);
}

#[test]
fn a_page_of_the_worked_example_has_the_bytes_that_lance_writes() {
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(300)]));
    let page = pages(&ints, FileVersion::V2_2).remove(0);
    let description = [
        0x0a, 0x15, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x10, 0x1a, 0x04, 0x0a, 0x02, 0x08, 0x20, 0x32, 0x01, 0x03, 0x38,
        0x01, 0x48, 0x04, 0x50, 0x01,
    ];
    assert_eq!(page.layout.encode_to_vec(), description);
    assert_eq!(page.buffers[0], [0x30, 0, 0, 0]);
    let chunk = [4, 0, 8, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x2c, 1, 0, 0];
    assert_eq!(page.buffers[1], chunk);

    let page = pages(&worked_example(), FileVersion::V2_2).remove(0);
    assert_eq!(page.buffers[0], [0x90, 0, 0, 0]);
    let mut chunk = vec![7, 0, 14, 0, 14, 0, 32, 0, 0, 0, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe];
    chunk.extend([1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0xfe, 0xfe]);
    chunk.extend([0, 0, 0, 0, 3, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0xfe, 0xfe]);
    chunk.extend([24, 25, 27, 28, 28, 29].iter().flat_map(|offset: &u32| offset.to_le_bytes()));
    chunk.extend(b"xyzwqHHH");
    assert_eq!(page.buffers[1], chunk);
    assert_eq!(page.buffers[2], [[4, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat());
}

#[test]
fn chunks_before_the_last_hold_a_power_of_two_of_at_least_two_values() {
    // Random enough that bitpacking does not pay: 8186 / 4 bytes allow 1024 values.
    let ints: ArrayRef = Arc::new(Int32Array::from_iter_values((0..5000_i32).map(|i| i.wrapping_mul(-1_640_531_535))));
    assert_eq!(chunks(&pages(&ints, FileVersion::V2_2)[0]).0, [1024; 3]);
    // Below a nullable struct wide values have to share chunks, too, though two of them pass the aim.
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..5).map(|i| i.to_string().repeat(9000))));
    let member = Arc::new(ArrowField::new("t", DataType::Utf8, true));
    let list = ListArray::new(member, OffsetBuffer::new(vec![0, 4, 5].into()), text, None);
    let list_field = Arc::new(ArrowField::new("l", list.data_type().clone(), true));
    let structs: ArrayRef = Arc::new(StructArray::new(vec![list_field].into(), vec![Arc::new(list)], None));
    assert_eq!(chunks(&pages(&structs, FileVersion::V2_2)[0]).0, [2, 2]);
}

#[test]
fn pages_end_before_empty_lists_fill_a_chunk_with_levels() {
    let mut ends = vec![0; 100_000];
    ends.extend([1; 60_000]);
    let lists: ArrayRef = Arc::new(int_lists(ends, None));
    let pages = pages(&lists, FileVersion::V2_2);
    assert!(pages.len() > 3);
    assert_eq!(pages.iter().map(|page| page.row_count).sum::<u64>(), 159_999);
    for page in pages {
        if let Some(Layout::MiniBlock(layout)) = &page.layout.layout {
            assert_eq!(layout.num_items, 1);
            assert!(chunks(&page).1.iter().all(|count| *count <= 32_767));
        }
    }
}

#[test]
fn a_repetition_index_counts_the_rows_that_end_in_each_chunk() {
    // A row of 1500 values and 700 rows of one value: chunks of 1024 values, the first one inside of the first row.
    let ends = std::iter::once(0).chain(1500..=2200).collect();
    let page = pages(&(Arc::new(int_lists(ends, None)) as ArrayRef), FileVersion::V2_2).remove(0);
    let index: Vec<_> = page.buffers[2].as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry)).collect();
    assert_eq!(index, [0, 1024, 549, 0, 152, 0]);
}

#[test]
fn strings_that_repeat_get_a_dictionary_and_others_do_not() {
    let dictionary_items = |distinct: u32, count: u32| {
        let texts = (0..count).map(|i| format!("city {}", i.wrapping_mul(2_654_435_761) % distinct));
        let page = pages(&(Arc::new(StringArray::from_iter_values(texts)) as ArrayRef), FileVersion::V2_2).remove(0);
        match page.layout.layout {
            Some(Layout::MiniBlock(layout)) => layout.dictionary.map(|_| layout.num_dictionary_items),
            _ => None,
        }
    };
    assert_eq!(dictionary_items(500, 20_000), Some(500));
    assert_eq!(dictionary_items(5, 300), Some(5));
    assert_eq!(dictionary_items(15_000, 20_000), None);
}
