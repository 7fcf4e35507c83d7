//! Option objects of `src/engine/port.ts`: every key is known, every value has its type.

use js_sys::{Array, BigUint64Array, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::batch::ipc;
use crate::error::{Error, Result};
use crate::table::{
    CleanupOptions, Consistency, CreateMode, MergeOptions, NewValue, Rows, ScanOptions, Update, VersionInfo, When,
};

/// `WireScanOptions`.
pub fn scan_options(js: &JsValue) -> Result<ScanOptions> {
    let known = [
        "columns",
        "expressions",
        "filter",
        "limit",
        "offset",
        "batchRows",
        "withRowId",
        "offsets",
        "rowIds",
        "useLsm",
    ];
    let options = Options::new(js, &known)?;
    Ok(ScanOptions {
        columns: options.strings("columns")?,
        expressions: options.strings("expressions")?.unwrap_or_default(),
        filter: options.string("filter")?,
        rows: match options.numbers("offsets")? {
            Some(offsets) => Some(Rows::Offsets(offsets)),
            None => options.numbers("rowIds")?.map(Rows::Ids),
        },
        limit: options.count("limit")?,
        offset: options.count("offset")?.unwrap_or_default(),
        batch_rows: options.count("batchRows")?,
        with_row_id: options.flag("withRowId")?.unwrap_or_default(),
        use_lsm: options.flag("useLsm")?,
    })
}

/// `WireCleanupOptions`.
pub fn cleanup_options(js: &JsValue) -> Result<CleanupOptions> {
    let options = Options::new(js, &["olderThanMs", "deleteUnverified", "errorIfTagged"])?;
    let default = CleanupOptions::default();
    Ok(CleanupOptions {
        older_than_ms: options.integer("olderThanMs")?,
        delete_unverified: options.flag("deleteUnverified")?.unwrap_or(default.delete_unverified),
        error_if_tagged: options.flag("errorIfTagged")?.unwrap_or(default.error_if_tagged),
    })
}

/// `WireMergeOptions`.
pub fn merge_options(js: &JsValue) -> Result<MergeOptions> {
    let known = ["on", "matchedUpdate", "notMatchedInsert", "notMatchedBySourceDelete", "timeoutMs", "useLsm"];
    let options = Options::new(js, &known)?;
    Ok(MergeOptions {
        on: options.strings("on")?.unwrap_or_default(),
        matched_update: options.when("matchedUpdate")?,
        not_matched_insert: options.flag("notMatchedInsert")?.unwrap_or_default(),
        not_matched_by_source_delete: options.when("notMatchedBySourceDelete")?,
        timeout_ms: options.count("timeoutMs")?,
        use_lsm: options.flag("useLsm")?,
    })
}

/// `WireUpdate`.
pub fn update(js: &JsValue) -> Result<Update> {
    let options = Options::new(js, &["filter", "columns", "expressions", "values"])?;
    let (columns, expressions) = (options.strings("columns")?, options.strings("expressions")?);
    let expressions = expressions.unwrap_or_default().into_iter().map(NewValue::Sql);
    let mut columns: Vec<(String, NewValue)> = columns.unwrap_or_default().into_iter().zip(expressions).collect();
    for batch in options.bytes("values")?.map_or(Ok(Vec::new()), |bytes| Ok(ipc::decode_stream(&bytes)?.1))? {
        let names = batch.schema();
        let constants = names.fields().iter().zip(batch.columns());
        columns.extend(constants.map(|(field, value)| (field.name().clone(), NewValue::Constant(value.clone()))));
    }
    Ok(Update { filter: options.string("filter")?, columns })
}

/// `Consistency`.
pub fn consistency(js: &JsValue) -> Result<Consistency> {
    let options = Options::new(js, &["kind", "ms"])?;
    match (options.string("kind")?.as_deref(), options.count("ms")?) {
        (Some("lazy"), None) => Ok(Consistency::Lazy),
        (Some("strong"), None) => Ok(Consistency::Strong),
        (Some("eventual"), Some(ms)) => Ok(Consistency::Eventual(ms)),
        _ => Err(Error::invalid_input("consistency is none of lazy, strong and eventual")),
    }
}

pub fn create_mode(name: &str) -> Result<CreateMode> {
    match name {
        "create" => Ok(CreateMode::Create),
        "overwrite" => Ok(CreateMode::Overwrite),
        _ => Err(Error::invalid_input(format!("Invalid mode {name}"))),
    }
}

/// A whole number that JavaScript holds exactly.
pub fn exact(name: &str, value: f64) -> Result<u64> {
    if value >= 0.0 && value.fract() == 0.0 && value <= 9_007_199_254_740_991.0 {
        Ok(value as u64)
    } else {
        Err(Error::invalid_input(format!("{name} must be a whole number from 0 to 2^53 - 1, found {value}")))
    }
}

/// `WireVersion[]`.
pub fn versions(versions: &[VersionInfo]) -> JsValue {
    let list: Array = versions
        .iter()
        .map(|version| {
            let totals = object(version.totals.iter().map(|(name, total)| (*name, number(*total))));
            JsValue::from(object([
                ("version", number(version.version)),
                ("timestampMs", timestamp_ms(version.timestamp_ns)),
                ("totals", totals.into()),
            ]))
        })
        .collect();
    list.into()
}

/// Microseconds keep the manifests' order within a millisecond.
pub fn timestamp_ms(timestamp_ns: u64) -> JsValue {
    ((timestamp_ns / 1_000) as f64 / 1_000.0).into()
}

pub fn number(value: u64) -> JsValue {
    JsValue::from_f64(value as f64)
}

pub fn object<'a>(entries: impl IntoIterator<Item = (&'a str, JsValue)>) -> Object {
    let object = Object::new();
    for (name, value) in entries {
        // A plain object takes any property.
        let _ = Reflect::set(&object, &name.into(), &value);
    }
    object
}

/// An object whose keys are known.
pub struct Options<'a> {
    js: &'a JsValue,
}

impl<'a> Options<'a> {
    pub fn new(js: &'a JsValue, known: &[&str]) -> Result<Options<'a>> {
        let object = js.dyn_ref::<Object>().ok_or_else(|| Error::invalid_input("options must be an object"))?;
        for key in Object::keys(object) {
            let key = key.as_string().unwrap_or_default();
            if !known.contains(&key.as_str()) {
                return Err(Error::invalid_input(format!("unknown option {key:?}")));
            }
        }
        Ok(Options { js })
    }

    pub fn get(&self, name: &str) -> Option<JsValue> {
        Reflect::get(self.js, &name.into()).ok().filter(|value| !value.is_undefined())
    }

    pub fn string(&self, name: &str) -> Result<Option<String>> {
        self.get(name).map(|value| value.as_string().ok_or_else(|| wrong_type(name, "a string"))).transpose()
    }

    /// A condition, or `true` for none.
    fn when(&self, name: &str) -> Result<When> {
        Ok(match self.get(name) {
            None => When::Never,
            Some(value) if value.as_bool() == Some(true) => When::Always,
            Some(_) => self.string(name)?.map_or(When::Never, When::If),
        })
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>> {
        self.get(name).map(|value| value.as_bool().ok_or_else(|| wrong_type(name, "a boolean"))).transpose()
    }

    pub fn count(&self, name: &str) -> Result<Option<u64>> {
        let count = |value: JsValue| exact(name, value.as_f64().ok_or_else(|| wrong_type(name, "a number"))?);
        self.get(name).map(count).transpose()
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        let integer = |value: JsValue| {
            let number = value.as_f64().ok_or_else(|| wrong_type(name, "a number"))?;
            let magnitude = exact(name, number.abs())? as i64;
            Ok(if number < 0.0 { -magnitude } else { magnitude })
        };
        self.get(name).map(integer).transpose()
    }

    pub fn numbers(&self, name: &str) -> Result<Option<Vec<u64>>> {
        let numbers = |value: JsValue| value.dyn_into::<BigUint64Array>().map(|numbers| numbers.to_vec());
        self.get(name).map(numbers).transpose().map_err(|_| wrong_type(name, "a BigUint64Array"))
    }

    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let bytes = |value: JsValue| value.dyn_into::<Uint8Array>().map(|bytes| bytes.to_vec());
        self.get(name).map(bytes).transpose().map_err(|_| wrong_type(name, "a Uint8Array"))
    }

    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let array = value.dyn_ref::<Array>().ok_or_else(|| wrong_type(name, "an array"))?;
        let strings = array.iter().map(|item| item.as_string().ok_or_else(|| wrong_type(name, "an array of strings")));
        strings.collect::<Result<_>>().map(Some)
    }
}

pub fn wrong_type(name: &str, expected: &str) -> Error {
    Error::invalid_input(format!("option {name:?} must be {expected}"))
}
