//! Logical types: the text by which a manifest names the type of a field.
//!
//! A leaf's text says its whole type; a nested field's text says only the kind of nesting, its children are fields of their own.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, TimeUnit};

use crate::collections::SortedMap;
use crate::error::{Error, Result};

/// The metadata key of Arrow's extension types.
pub const EXTENSION_NAME: &str = "ARROW:extension:name";
/// The metadata key of what an extension type says about itself.
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
/// JSON text in the binary form of Lance, a `large_binary` on disk.
pub const JSON_EXTENSION: &str = "lance.json";
/// Items of a vector whose two bytes are a bfloat16.
pub const BFLOAT16_EXTENSION: &str = "lance.bfloat16";
/// A large value that may lie outside of the data file; one column on disk.
pub const BLOB_V2_EXTENSION: &str = "lance.blob.v2";

/// Fixed-size lists may nest in one text; nobody needs more, and parsing recurses.
const MAX_LIST_DEPTH: usize = 8;

/// What the text of a field says, before its children are looked at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LogicalType {
    Leaf(DataType),
    Struct,
    List,
    LargeList,
    Map,
    FixedSizeListOfStruct(i32),
}

/// Reads the text of a field. `NotSupported` for a type that this build does not know.
pub(super) fn parse(text: &str) -> Result<LogicalType> {
    Ok(match text {
        "struct" => LogicalType::Struct,
        "list" | "list.struct" => LogicalType::List,
        "large_list" | "large_list.struct" => LogicalType::LargeList,
        "map" => LogicalType::Map,
        "json" => LogicalType::Leaf(DataType::LargeBinary),
        _ => match text.strip_prefix("fixed_size_list:struct:") {
            Some(size) => LogicalType::FixedSizeListOfStruct(parse_size(text, size)?),
            None => LogicalType::Leaf(parse_leaf(text, 0)?),
        },
    })
}

/// Reads the text of a leaf.
///
/// # Errors
/// As `parse`.
pub fn parse_leaf_text(text: &str) -> Result<DataType> {
    parse_leaf(text, 0)
}

fn parse_leaf(text: &str, depth: usize) -> Result<DataType> {
    let simple = match text {
        "null" => DataType::Null,
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "halffloat" => DataType::Float16,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "large_string" => DataType::LargeUtf8,
        "binary" => DataType::Binary,
        "large_binary" => DataType::LargeBinary,
        "date32:day" => DataType::Date32,
        "date64:ms" => DataType::Date64,
        "time32:s" => DataType::Time32(TimeUnit::Second),
        "time32:ms" => DataType::Time32(TimeUnit::Millisecond),
        "time64:us" => DataType::Time64(TimeUnit::Microsecond),
        "time64:ns" => DataType::Time64(TimeUnit::Nanosecond),
        _ => return parse_parameters(text, depth),
    };
    Ok(simple)
}

fn parse_parameters(text: &str, depth: usize) -> Result<DataType> {
    let (kind, rest) = text.split_once(':').ok_or_else(|| unknown(text))?;
    match kind {
        "timestamp" => {
            // The zone may hold colons itself ("+01:00").
            let (unit, zone) = rest.split_once(':').ok_or_else(|| unknown(text))?;
            let zone = (zone != "-").then(|| Arc::from(zone));
            Ok(DataType::Timestamp(parse_unit(text, unit)?, zone))
        }
        "duration" => Ok(DataType::Duration(parse_unit(text, rest)?)),
        "decimal" => parse_decimal(text, rest),
        "fixed_size_binary" => Ok(DataType::FixedSizeBinary(parse_size(text, rest)?)),
        "fixed_size_list" => {
            let (inner, size) = rest.rsplit_once(':').ok_or_else(|| unknown(text))?;
            let size = parse_size(text, size)?;
            let item = if inner == BFLOAT16_EXTENSION {
                bfloat16_item()
            } else {
                if depth >= MAX_LIST_DEPTH {
                    return Err(Error::not_supported(format!("fixed-size lists nested deeper than {MAX_LIST_DEPTH}")));
                }
                let inner = parse_leaf(inner, depth + 1)?;
                if !is_list_item(&inner) {
                    return Err(unknown(text));
                }
                ArrowField::new("item", inner, true)
            };
            Ok(DataType::FixedSizeList(Arc::new(item), size))
        }
        "dict" => {
            // The last part says whether the dictionary is ordered: a promise that nothing here relies on.
            let (rest, _ordered) = rest.rsplit_once(':').ok_or_else(|| unknown(text))?;
            let (value, key) = rest.rsplit_once(':').ok_or_else(|| unknown(text))?;
            let (value, key) = (parse_leaf(value, depth)?, parse_leaf(key, depth)?);
            if !key.is_dictionary_key_type() || !is_dictionary_value(&value) {
                return Err(unknown(text));
            }
            Ok(DataType::Dictionary(Box::new(key), Box::new(value)))
        }
        _ => Err(unknown(text)),
    }
}

fn parse_decimal(text: &str, rest: &str) -> Result<DataType> {
    let mut parts = rest.split(':');
    let (Some(width), Some(precision), Some(scale), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(unknown(text));
    };
    let precision: u8 = precision.parse().map_err(|_| unknown(text))?;
    let scale: i8 = scale.parse().map_err(|_| unknown(text))?;
    let (max, data_type) = match width {
        "128" => (38, DataType::Decimal128(precision, scale)),
        "256" => (76, DataType::Decimal256(precision, scale)),
        _ => return Err(unknown(text)),
    };
    if precision == 0 || precision > max || scale > precision as i8 {
        return Err(Error::corrupt(format!("type \"{text}\": precision or scale out of range")));
    }
    Ok(data_type)
}

fn parse_size(text: &str, size: &str) -> Result<i32> {
    match size.parse::<i32>() {
        Ok(size) if size > 0 => Ok(size),
        Ok(_) => Err(Error::corrupt(format!("type \"{text}\": the size is not positive"))),
        Err(_) => Err(unknown(text)),
    }
}

fn parse_unit(text: &str, unit: &str) -> Result<TimeUnit> {
    match unit {
        "s" => Ok(TimeUnit::Second),
        "ms" => Ok(TimeUnit::Millisecond),
        "us" => Ok(TimeUnit::Microsecond),
        "ns" => Ok(TimeUnit::Nanosecond),
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> Error {
    // The text comes from a file and may be of any length.
    let shown: String = text.chars().take(80).collect();
    Error::not_supported(format!("type \"{shown}\""))
}

/// The text of a type. Types that [`stored_leaf`] refuses give a text that no reader accepts.
pub(super) fn encode(data_type: &DataType, metadata: &SortedMap<String, String>) -> String {
    match data_type {
        DataType::LargeBinary if metadata.get(EXTENSION_NAME).is_some_and(|name| name == JSON_EXTENSION) => {
            "json".to_owned()
        }
        DataType::Struct(_) => "struct".to_owned(),
        DataType::List(item) if is_struct(item.data_type()) => "list.struct".to_owned(),
        DataType::List(_) => "list".to_owned(),
        DataType::LargeList(item) if is_struct(item.data_type()) => "large_list.struct".to_owned(),
        DataType::LargeList(_) => "large_list".to_owned(),
        DataType::Map(_, _) => "map".to_owned(),
        DataType::FixedSizeList(item, size) if is_struct(item.data_type()) => {
            format!("fixed_size_list:struct:{size}")
        }
        leaf => encode_leaf(leaf),
    }
}

fn encode_leaf(data_type: &DataType) -> String {
    let simple = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float16 => "halffloat",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::LargeUtf8 => "large_string",
        DataType::Binary => "binary",
        DataType::LargeBinary => "large_binary",
        DataType::Date32 => "date32:day",
        DataType::Date64 => "date64:ms",
        DataType::Time32(unit) => return format!("time32:{}", unit_text(*unit)),
        DataType::Time64(unit) => return format!("time64:{}", unit_text(*unit)),
        DataType::Duration(unit) => return format!("duration:{}", unit_text(*unit)),
        DataType::Timestamp(unit, zone) => {
            return format!("timestamp:{}:{}", unit_text(*unit), zone.as_deref().unwrap_or("-"));
        }
        DataType::Decimal128(precision, scale) => return format!("decimal:128:{precision}:{scale}"),
        DataType::Decimal256(precision, scale) => return format!("decimal:256:{precision}:{scale}"),
        DataType::FixedSizeBinary(size) => return format!("fixed_size_binary:{size}"),
        DataType::FixedSizeList(item, size) if is_bfloat16(item) => {
            return format!("fixed_size_list:{BFLOAT16_EXTENSION}:{size}");
        }
        DataType::FixedSizeList(item, size) => {
            return format!("fixed_size_list:{}:{size}", encode_leaf(item.data_type()));
        }
        DataType::Dictionary(key, value) => return format!("dict:{}:{}:false", encode_leaf(value), encode_leaf(key)),
        other => return format!("unstorable:{other}"),
    };
    simple.to_owned()
}

fn unit_text(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// The `encoding` hint of a field: 0 struct and null, 1 fixed width and lists, 2 strings and binary, 3 dictionary.
pub(super) fn encoding_hint(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Null | DataType::Struct(_) => 0,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 2,
        DataType::Dictionary(_, _) => 3,
        _ => 1,
    }
}

/// The form in which a leaf is stored: views become plain strings and bytes, the item of a fixed-size list loses its name and
/// nullability. `Err` holds what the type is called, for types that Lance does not store.
pub(super) fn stored_leaf(data_type: &DataType) -> Result<DataType, &'static str> {
    match data_type {
        DataType::Utf8View => Ok(DataType::Utf8),
        DataType::BinaryView => Ok(DataType::Binary),
        DataType::FixedSizeList(item, size) => {
            if *size <= 0 {
                return Err("fixed-size list of no items");
            }
            if is_bfloat16(item) {
                return Ok(DataType::FixedSizeList(Arc::new(bfloat16_item()), *size));
            }
            let inner = match item.data_type() {
                DataType::List(_) | DataType::LargeList(_) | DataType::ListView(_) | DataType::LargeListView(_) => {
                    return Err("fixed-size list of lists");
                }
                DataType::FixedSizeList(inner, _) if is_struct(inner.data_type()) => {
                    return Err("fixed-size list of fixed-size lists of structs");
                }
                inner => stored_leaf(inner)?,
            };
            if !is_list_item(&inner) {
                return Err("fixed-size list of items without a fixed width");
            }
            Ok(DataType::FixedSizeList(Arc::new(ArrowField::new("item", inner, true)), *size))
        }
        DataType::Dictionary(key, value) => {
            let value = stored_leaf(value)?;
            if !key.is_dictionary_key_type() || !is_dictionary_value(&value) {
                return Err("dictionary of nested values");
            }
            // As with zones: LanceDB does not open a table whose text of a dictionary's value holds a colon.
            if encode_leaf(&value).contains(':') {
                return Err("dictionary of values other than numbers, booleans, text and bytes");
            }
            Ok(DataType::Dictionary(key.clone(), Box::new(value)))
        }
        DataType::FixedSizeBinary(size) if *size <= 0 => Err("fixed-size binary of no bytes"),
        DataType::Decimal32(_, _) => Err("decimal32"),
        DataType::Decimal64(_, _) => Err("decimal64"),
        DataType::Interval(_) => Err("interval"),
        // LanceDB splits the text of the type at every colon, and panics when it opens such a table.
        DataType::Timestamp(_, Some(zone)) if zone.contains(':') => Err("timestamp whose zone holds a \":\""),
        DataType::Union(_, _) => Err("union"),
        DataType::RunEndEncoded(_, _) => Err("run-end encoded"),
        DataType::ListView(_) | DataType::LargeListView(_) => Err("list view"),
        DataType::Time32(TimeUnit::Microsecond | TimeUnit::Nanosecond)
        | DataType::Time64(TimeUnit::Second | TimeUnit::Millisecond) => {
            Err("time of a unit that does not fit its width")
        }
        DataType::Struct(_) | DataType::List(_) | DataType::LargeList(_) | DataType::Map(_, _) => Err("nested leaf"),
        leaf => Ok(leaf.clone()),
    }
}

/// As Lance gives it back: with metadata of the extension, which is empty.
fn bfloat16_item() -> ArrowField {
    let metadata =
        [(EXTENSION_NAME.to_owned(), BFLOAT16_EXTENSION.to_owned()), (EXTENSION_METADATA.to_owned(), String::new())];
    ArrowField::new("item", DataType::FixedSizeBinary(2), true).with_metadata(metadata)
}

fn is_bfloat16(item: &ArrowField) -> bool {
    matches!(item.data_type(), DataType::FixedSizeBinary(2))
        && item.metadata().get(EXTENSION_NAME).is_some_and(|name| name == BFLOAT16_EXTENSION)
}

fn is_list_item(data_type: &DataType) -> bool {
    matches!(data_type, DataType::FixedSizeList(_, _) | DataType::FixedSizeBinary(_) | DataType::Boolean)
        || data_type.is_primitive()
}

fn is_dictionary_value(data_type: &DataType) -> bool {
    !data_type.is_nested() && !matches!(data_type, DataType::Null)
}

fn is_struct(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(_))
}
