//! Makes `seeds/` of the golden files: `npm run fuzz -- seeds`.
//!
//! Of each target the smallest inputs that differ in more than their numbers.

#![allow(clippy::unwrap_used, reason = "a tool for those who work on it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use bytes::Bytes;
use lancelet::format::file::encoding::encode_levels;
use lancelet::format::file::footer::{Footer, decode_table};
use lancelet::format::proto::{self, Any, ColumnMetadata, FileDescriptor, PageLayout};
use lancelet::format::table::{Field, Schema};
use lancelet_fuzz::input::{PageInput, push_sized};
use lancelet_fuzz::one_file_store::file_schema::FileSchema;
use prost::Message;

/// Inputs by a key that says what is special about them: the smallest one stays.
type Seeds = BTreeMap<String, (String, Vec<u8>)>;

fn keep(seeds: &mut Seeds, key: String, name: String, bytes: Vec<u8>) {
    match seeds.get(&key) {
        Some((_, there)) if there.len() <= bytes.len() => {}
        _ => drop(seeds.insert(key, (name, bytes))),
    }
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Two folders up and the file's own name.
fn short_name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    parts[parts.len() - 2..].join("_").replace('.', "_")
}

/// A message without its numbers and bytes: two pages of the same make are alike.
fn shape(message: &impl std::fmt::Debug) -> String {
    format!("{message:?}").chars().filter(|c| c.is_ascii_alphabetic()).collect()
}

/// The fields from a top-level field to one leaf and what is below it, as the schema of a file that has no other.
fn path_to(fields: &[proto::Field], leaf: i32) -> Vec<proto::Field> {
    let mut path = Vec::new();
    let mut next = leaf;
    while let Some(field) = fields.iter().find(|field| field.id == next && next != -1) {
        path.push(field.clone());
        next = field.parent_id;
    }
    path.reverse();
    // The members of a packed struct, parents first.
    for field in fields {
        if path.iter().any(|above| above.id == field.parent_id && (above.id == leaf || above.parent_id == leaf))
            && !path.iter().any(|there| there.id == field.id)
        {
            path.push(field.clone());
        }
    }
    path
}

fn data_file(path: &Path, seeds: &mut BTreeMap<&str, Seeds>) {
    let bytes = std::fs::read(path).unwrap();
    let size = bytes.len() as u64;
    let Ok(footer) = Footer::decode(&bytes, size) else { return };
    let name = short_name(path);
    let version = footer.version.as_str();
    let slice = |range: &std::ops::Range<u64>| &bytes[range.start as usize..range.end as usize];
    let mut put = |target: &'static str, key: String, name: String, bytes: Vec<u8>| {
        keep(seeds.entry(target).or_default(), key, name, bytes);
    };

    let tail = &bytes[footer.column_table.start as usize..];
    let tail = [&size.to_le_bytes()[..], tail].concat();
    put("footer", format!("{version} {}", footer.column_count.min(3)), name.clone(), tail);

    let columns = decode_table(slice(&footer.column_table), 0, size).unwrap();
    let globals = decode_table(slice(&footer.global_table), 0, size).unwrap();
    let Ok(descriptor) = FileDescriptor::decode(slice(&globals[0])) else { return };
    let mut fields = descriptor.schema.unwrap_or_default().fields;
    fields.retain(|field| field.id != -1);
    let Ok(schema) = FileSchema::of_file(&bytes) else { return };
    let whole = Schema { fields: schema.fields.clone(), ..Schema::default() };
    let fields_below = whole.all_fields();
    if bytes.len() <= 2500 {
        let types: Vec<_> = fields.iter().map(|field| field.logical_type.clone()).collect();
        put("file", format!("{version} {types:?}"), name.clone(), bytes.clone());
    }

    let minor_version = footer.version.numbers().1 as u8;
    for (number, column) in columns.iter().enumerate() {
        let owner = |field: &&&Field| schema.column_of(field.id) == Some(number as u32);
        let Some(field) = fields_below.iter().find(owner) else { continue };
        let Ok(metadata) = ColumnMetadata::decode(Bytes::copy_from_slice(slice(column))) else { continue };
        let Some(encoding) = metadata.pages.first().and_then(|page| page.encoding.clone()) else { continue };
        let kind = |encoding: &proto::Encoding| {
            let any = Any::decode(encoding.direct.clone().unwrap_or_default().encoding).unwrap_or_default();
            // Of 2.0 the message is not looked into: its bytes tell enough.
            let kind = PageLayout::decode(any.value.clone()).ok().filter(|_| minor_version > 0);
            (kind.map_or(format!("{:?}", any.value.first()), |layout| shape(&layout)), any)
        };
        if column.end - column.start <= 400 {
            let claimed = [&size.to_le_bytes()[..], slice(column)].concat();
            let key = format!("{version} {} {}", metadata.pages.len().min(2), kind(&encoding).0);
            put("column_metadata", key, format!("{name}_{}", field.name), claimed);
        }
        let path = path_to(&fields, field.id.0);
        if minor_version == 0 && path.len() > 1 {
            continue;
        }
        for page in &metadata.pages {
            let Some(encoding) = &page.encoding else { continue };
            let (kind, any) = kind(encoding);
            let buffers: Vec<Vec<u8>> = page
                .buffer_offsets
                .iter()
                .zip(&page.buffer_sizes)
                .map(|(at, size)| bytes[*at as usize..(*at + *size) as usize].to_vec())
                .collect();
            let Ok(row_count) = u16::try_from(page.length) else { continue };
            let types: Vec<_> = path.iter().map(|field| field.logical_type.clone()).collect();
            let descriptor = FileDescriptor {
                schema: Some(proto::Schema { fields: path.clone(), ..Default::default() }),
                length: page.length,
            };
            let input = PageInput {
                minor_version,
                row_count,
                descriptor: descriptor.encode_to_vec(),
                type_url: any.type_url.into_bytes(),
                description: any.value.to_vec(),
                buffers,
            };
            let input_bytes = input.to_bytes();
            let is_small = input_bytes.len() <= 1200;
            // A map of only a key is none.
            let is_whole = FileSchema::of_file(&input.to_file()).is_ok();
            if is_small && is_whole && PageInput::parse(&input_bytes) == input {
                let of_type = if types.len() > 1 { types.join(" ") } else { String::new() };
                let of_type = of_type.replace(|c: char| c.is_ascii_digit(), "");
                put("page", format!("{of_type} {kind}"), format!("{name}_{}", field.name), input_bytes);
            }
        }
    }
}

fn levels(seeds: &mut Seeds) {
    // Layers, repetition and definition levels.
    let pages: [(&[u8], &[u16], &[u16]); 6] = [
        (&[3], &[], &[0, 1, 0, 0, 1, 0]),
        (&[3, 6], &[1, 0, 1, 1, 1, 0, 0], &[0, 0, 3, 2, 0, 1, 0]),
        (&[1, 5, 3], &[1, 1, 1], &[0, 2, 1]),
        (&[1, 2, 6], &[2, 1, 0, 2, 2], &[0, 0, 0, 1, 2]),
        (&[3, 3, 4, 3], &[1, 0, 0, 1, 1], &[0, 1, 2, 3, 4]),
        (&[3, 6, 6, 3, 6], &[3, 2, 1, 0, 3, 3], &[0, 1, 2, 0, 5, 7]),
    ];
    for (i, (layers, rep, def)) in pages.into_iter().enumerate() {
        for (form, repeat) in [("short", 1), ("long", 300)] {
            let count = rep.len().max(def.len()) * repeat;
            let mut out = vec![layers.len() as u8];
            out.extend_from_slice(layers);
            out.extend_from_slice(&(count as u16).to_le_bytes());
            for levels in [rep, def] {
                let (encoding, bytes) = encode_levels(&levels.repeat(repeat), true);
                out.push(u8::from(!levels.is_empty()));
                push_sized(&mut out, &encoding.encode_to_vec());
                push_sized(&mut out, &bytes);
            }
            keep(seeds, format!("{i} {form}"), format!("layers_{i}_{form}"), out);
        }
    }
}

fn ipc(golden: &Path, seeds: &mut Seeds) {
    for path in files(golden, "arrows") {
        let Ok(reader) = StreamReader::try_new(std::fs::File::open(&path).unwrap(), None) else { continue };
        let Some(Ok(batch)) = reader.into_iter().next() else { continue };
        let batch: RecordBatch = batch.slice(0, batch.num_rows().min(3));
        for (i, field) in batch.schema().fields().iter().enumerate() {
            let column = batch.project(&[i]).unwrap();
            let key = format!("{}", field.data_type()).replace(|c: char| c.is_ascii_digit(), "");
            let Ok(bytes) = lancelet::batch::ipc::encode_batches(&column.schema(), &[column.clone(), column]) else {
                continue;
            };
            if bytes.len() <= 900 {
                keep(seeds, key, format!("{}_{}", short_name(&path), field.name()), bytes);
            }
        }
    }
}

fn filters(root: &Path, seeds: &mut Seeds) {
    // One text per line of the conformance vectors that holds one; the JSON is flat enough to need no parser.
    let text = std::fs::read_to_string(root.join("../test/filters/vectors.json")).unwrap();
    for line in text.lines() {
        let Some(rest) = line.trim().strip_prefix("\"filter\": \"") else { continue };
        let Some(end) = rest.rfind('"') else { continue };
        let filter = rest[..end].replace("\\\"", "\"").replace("\\\\", "\\");
        let words = filter.to_ascii_lowercase().replace(|c: char| c.is_ascii_digit(), "");
        let key: Vec<_> = words.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 2).collect();
        let name: String = filter.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        keep(seeds, key.join(" "), name, filter.into_bytes());
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let golden = root.join("tests/golden");
    let mut seeds: BTreeMap<&str, Seeds> = BTreeMap::new();
    for path in files(&golden, "lance") {
        data_file(&path, &mut seeds);
    }
    for (target, extension, limit) in [("manifest", "manifest", 1200), ("transaction", "txn", 800)] {
        let found = seeds.entry(target).or_default();
        for path in files(&golden, extension) {
            let bytes = std::fs::read(&path).unwrap();
            let operation = lancelet::format::table::Transaction::decode(&bytes).map(|t| t.operation.name());
            let table = path.iter().rev().nth(2).unwrap().to_string_lossy().into_owned();
            let key = operation.map_or(table.clone(), str::to_owned);
            if bytes.len() <= limit {
                keep(found, format!("{key} {}", bytes.len() / 300), format!("{table}_{key}"), bytes);
            }
        }
    }
    for (extension, kind) in [("arrow", 0), ("bin", 1)] {
        for path in files(&golden, extension) {
            let bytes = [&[kind], &std::fs::read(&path).unwrap()[..]].concat();
            if bytes.len() <= 4096 {
                let key = format!("{extension} {}", bytes.len() / 256);
                keep(seeds.entry("deletion_file").or_default(), key, format!("deleted_{extension}"), bytes);
            }
        }
    }
    for (i, rows) in [vec![], vec![0], (0..5000).collect::<Vec<u32>>(), vec![1, 70_000, u32::MAX]].iter().enumerate() {
        let vector = lancelet::format::table::DeletionVector { rows: rows.iter().copied().collect() };
        let bytes = [&[1], &vector.encode_bitmap()[..]].concat();
        keep(seeds.entry("deletion_file").or_default(), format!("ours {i}"), format!("bitmap_{i}"), bytes);
    }
    levels(seeds.entry("levels").or_default());
    ipc(&golden, seeds.entry("ipc").or_default());
    filters(&root, seeds.entry("filter_text").or_default());

    let target_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (target, inputs) in seeds {
        let folder = target_folder.join(target);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut total = 0;
        for (i, (name, bytes)) in inputs.values().enumerate() {
            total += bytes.len();
            std::fs::write(folder.join(format!("{i:03}_{}", name.replace(['/', ' '], "_"))), bytes).unwrap();
        }
        println!("{target}: {} inputs, {total} bytes", inputs.len());
    }
}
