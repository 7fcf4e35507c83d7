use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use prost::Message;

use super::levels_build::{LeafPath, Levels};
use super::page_build::PageBuilder;
use super::page_encode::EncodedPage;
use crate::error::Error;
use crate::format::file::FileVersion;
use crate::format::proto::CompressiveEncoding;
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::page_layout::Layout;
use crate::format::table::Schema;

fn paths(array: &ArrayRef) -> Vec<LeafPath> {
    let field = ArrowField::new("c", array.data_type().clone(), true);
    LeafPath::all_of(&Schema::from_arrow(&ArrowSchema::new(vec![field])).unwrap(), FileVersion::V2_2).unwrap()
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

// W2, W4
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
    let nulls = Some(NullBuffer::from(vec![true, true, false]));
    let list = arrow_select::concat::concat(&[&list, &list.slice(0, 1)]).unwrap();
    let structs: ArrayRef = Arc::new(StructArray::new(vec![list_field].into(), vec![list], nulls));
    assert_eq!(chunks(&pages(&structs, FileVersion::V2_2)[0]).0, [2, 2]);
}

// W3
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

/// `values encoding/dictionary encoding` of a page, by the names of the messages.
fn forms(page: &EncodedPage) -> String {
    fn name(encoding: Option<&CompressiveEncoding>) -> String {
        let Some(Some(compression)) = encoding.map(|encoding| &encoding.compression) else { return "-".to_owned() };
        match compression {
            Compression::Flat(flat) => format!("flat{}", flat.bits_per_value),
            Compression::Variable(_) => "variable".to_owned(),
            Compression::InlineBitpacking(packed) => format!("packed{}", packed.uncompressed_bits_per_value),
            Compression::Fsst(fsst) => format!("fsst({})", name(fsst.values.as_deref())),
            Compression::Rle(rle) => format!("rle({})", name(rle.values.as_deref())),
            Compression::ByteStreamSplit(split) => format!("split({})", name(split.values.as_deref())),
            Compression::General(general) => format!("lz4({})", name(general.values.as_deref())),
            Compression::PackedStruct(packed) => format!("rows{:?}", packed.bits_per_value),
            Compression::VariablePackedStruct(packed) => {
                format!("rows({})", packed.fields.iter().map(|field| name(field.value.as_ref())).collect::<String>())
            }
            _ => "other".to_owned(),
        }
    }
    match &page.layout.layout {
        Some(Layout::MiniBlock(layout)) => {
            let values = name(layout.value_compression.as_ref());
            layout.dictionary.as_ref().map_or(values.clone(), |items| format!("{values}/{}", name(Some(items))))
        }
        Some(Layout::FullZip(layout)) => format!("full-zip {}", name(layout.value_compression.as_ref())),
        Some(Layout::Constant(layout)) => match layout.inline_value.is_some() {
            true => format!("constant {}", page.buffers.len()),
            false => format!("constant buffer {}", page.buffers.len()),
        },
        _ => "no layout".to_owned(),
    }
}

fn forms_with(array: ArrayRef, metadata: &[(&str, &str)], version: FileVersion) -> String {
    let metadata: HashMap<_, _> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let field = ArrowField::new("c", array.data_type().clone(), true).with_metadata(metadata);
    let schema = Schema::from_arrow(&ArrowSchema::new(vec![field])).unwrap();
    let path = LeafPath::all_of(&schema, version).unwrap().remove(0);
    let mut builder = PageBuilder::new(path, version);
    let arrays = builder.resolve(&array).unwrap();
    let (taken, mut pages) = builder.take(&arrays, 0..array.len(), 0).unwrap();
    assert_eq!(taken, array.len());
    pages.extend(builder.flush().unwrap());
    assert_eq!(pages.len(), 1);
    forms(&pages[0])
}

fn scrambled(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
fn the_form_of_values_is_the_smallest_one() {
    let longs = |value: &dyn Fn(u64) -> i64| Arc::new(Int64Array::from_iter_values((0..8000).map(value))) as ArrayRef;
    let texts =
        |value: &dyn Fn(u64) -> String| Arc::new(StringArray::from_iter_values((0..8000).map(value))) as ArrayRef;
    let form = |array: ArrayRef| forms_with(array, &[], FileVersion::V2_2);
    assert_eq!(form(longs(&|i| i as i64)), "packed64");
    assert_eq!(form(longs(&|i| scrambled(i) as i64)), "flat64");
    assert_eq!(form(longs(&|i| (scrambled(i / 100) >> 2) as i64)), "rle(flat64)");
    assert_eq!(form(longs(&|i| scrambled(scrambled(i) % 90) as i64)), "packed32/flat64");
    assert_eq!(form(longs(&|_| 7)), "constant 0");
    assert_eq!(form(texts(&|i| format!("https://example.com/{i}"))), "fsst(variable)");
    assert_eq!(form(texts(&|i| format!("city {}", scrambled(i) % 90))), "packed32/lz4(variable)");
    assert_eq!(form(texts(&|i| format!("city {}", i / 500))), "rle(flat32)/lz4(variable)");
    assert_eq!(form(texts(&|_| "same".into())), "constant buffer 1");
    assert_eq!(form(texts(&|i| "lorem ipsum ".repeat(30) + &i.to_string())), "full-zip fsst(variable)");
    assert_eq!(form(texts(&|i| "lorem ipsum ".repeat(30) + &(i % 5).to_string())), "packed32/lz4(variable)");
    let few: ArrayRef = Arc::new(Int32Array::from_iter((0..20).map(|i| (i % 3 > 0).then_some(5))));
    assert_eq!(form(few), "constant 2");
    let many: ArrayRef = Arc::new(Int32Array::from_iter((0..2000).map(|i| (i % 30 > 0).then_some(5))));
    assert_eq!(form(many), "rle(flat32)");
}

#[test]
fn files_of_2_1_have_neither_scalars_nor_compressed_dictionaries_nor_those_of_64_bits() {
    let longs: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..8000).map(|i| scrambled(scrambled(i) % 90) as i64)));
    assert_eq!(forms_with(longs, &[], FileVersion::V2_1), "flat64");
    let same: ArrayRef = Arc::new(Int64Array::from_iter_values((0..8000).map(|_| 7)));
    assert_eq!(forms_with(same, &[("lance-encoding:compression", "lz4")], FileVersion::V2_1), "rle(flat64)");
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..8000).map(|i| format!("city {}", i % 90))));
    assert_eq!(forms_with(texts, &[], FileVersion::V2_1), "packed32/variable");
}

#[test]
fn the_metadata_of_a_field_decides_about_its_encoding() {
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..4000).map(|i| 100.0 + f64::from(i) * 0.001)));
    let longs: ArrayRef = Arc::new(Int64Array::from_iter_values((0..4000).map(|i| i64::from(i) << 40)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..4000).map(|i| format!("some text {i}"))));
    let cities: ArrayRef = Arc::new(StringArray::from_iter_values((0..8000).map(|i| format!("city {}", i % 90))));
    let form = |array: &ArrayRef, metadata: &[(&str, &str)]| forms_with(array.clone(), metadata, FileVersion::V2_2);
    let compression = |value| ("lance-encoding:compression", value);
    assert_eq!(form(&longs, &[compression("none")]), "flat64");
    assert_eq!(form(&longs, &[compression("lz4")]), "lz4(split(flat64))");
    assert_eq!(form(&longs, &[compression("zstd"), ("lance-encoding:bss", "off")]), "lz4(flat64)");
    assert_eq!(form(&floats, &[compression("lz4"), ("lance-encoding:bss", "on")]), "lz4(split(flat64))");
    assert_eq!(form(&floats, &[("lance-encoding:bss", "on")]), "flat64");
    assert_eq!(form(&texts, &[compression("none")]), "variable");
    assert_eq!(form(&texts, &[compression("lz4")]), "lz4(variable)");
    assert_eq!(form(&cities, &[compression("fsst")]), "fsst(variable)");
    assert_eq!(form(&cities, &[("lance-encoding:dict-divisor", "1000")]), "fsst(variable)");
    assert_eq!(form(&cities, &[("lance-encoding:dict-size-ratio", "0.01")]), "fsst(variable)");
    assert_eq!(form(&cities, &[("lance-encoding:dict-values-compression", "none")]), "packed32/variable");
    assert_eq!(form(&cities, &[("lance-encoding:structural-encoding", "fullzip")]), "full-zip fsst(variable)");
    assert_eq!(form(&longs, &[("lance-encoding:structural-encoding", "fullzip")]), "full-zip flat64");
    assert_eq!(form(&longs, &[compression("what"), ("unknown", "key")]), form(&longs, &[]));
    let runs: ArrayRef = Arc::new(Int32Array::from_iter_values((0..4000).map(|i| i / 50)));
    assert_eq!(form(&runs, &[]), "rle(flat32)");
    assert_eq!(form(&runs, &[("lance-encoding:rle-threshold", "0")]), "packed32");
}

#[test]
fn packed_structs_are_one_column_of_rows() {
    let rows = |second: ArrayRef| {
        let fields: Fields =
            vec![ArrowField::new("a", DataType::Int32, true), ArrowField::new("b", second.data_type().clone(), true)]
                .into();
        let first: ArrayRef = Arc::new(Int32Array::from_iter_values(0..500));
        Arc::new(StructArray::new(fields, vec![first, second], None)) as ArrayRef
    };
    let packed = [("lance-encoding:packed", "true")];
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..500).map(f64::from)));
    assert_eq!(forms_with(rows(floats.clone()), &packed, FileVersion::V2_2), "rows[32, 64]");
    assert_eq!(forms_with(rows(floats), &packed, FileVersion::V2_1), "rows[32, 64]");
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(|i| i.to_string())));
    assert_eq!(forms_with(rows(texts), &packed, FileVersion::V2_2), "full-zip rows(flat32variable)");
}

#[test]
fn a_null_in_a_packed_struct_is_refused_by_name() {
    let members = vec![ArrowField::new("a", DataType::Int32, true)];
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, None]));
    let rows: ArrayRef =
        Arc::new(StructArray::new(members.into(), vec![values], Some(NullBuffer::from(vec![true, false, true]))));
    let field = ArrowField::new("c", rows.data_type().clone(), true)
        .with_metadata(HashMap::from([("packed".to_owned(), "true".to_owned())]));
    let schema = Schema::from_arrow(&ArrowSchema::new(vec![field])).unwrap();
    let path = LeafPath::all_of(&schema, FileVersion::V2_2).unwrap().remove(0);
    let error = PageBuilder::new(path, FileVersion::V2_2).resolve(&rows).err();
    let message = "member \"a\" of a packed struct takes no nulls, but row 2 of the batch has one";
    assert_eq!(error, Some(Error::schema(message)));
}
