//! An error of the engine as `WireError` of `src/errors.ts`, which the facade makes a `LanceError` of.

use js_sys::{Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::error::Error;

/// `{ code, message, retryable, details }`.
pub fn to_js(error: &Error) -> JsValue {
    let details = Object::new();
    for (name, value) in details_of(error) {
        set(&details, name, &value);
    }
    let wire = Object::new();
    set(&wire, "code", &error.code().as_str().into());
    set(&wire, "message", &error.to_string().into());
    set(&wire, "retryable", &error.is_retryable().into());
    set(&wire, "details", &details);
    wire.into()
}

fn details_of(error: &Error) -> Vec<(&'static str, JsValue)> {
    let number = |value: u64| JsValue::from_f64(value as f64);
    match error {
        Error::TableNotFound { name } | Error::TableExists { name } => vec![("name", name.into())],
        Error::NotSupported { feature } => vec![("feature", feature.into())],
        Error::Conflict { ours, theirs, version } => {
            vec![("ours", ours.into()), ("theirs", theirs.into()), ("version", number(*version))]
        }
        Error::Corrupt { path, offset, reason } => {
            vec![("path", path.into()), ("offset", offset.map_or(JsValue::NULL, number)), ("reason", reason.into())]
        }
        Error::Quota { needed_bytes } => vec![("neededBytes", needed_bytes.map_or(JsValue::NULL, number))],
        Error::Storage { path, source } => vec![("path", path.into()), ("source", source.into())],
        Error::InvalidInput { .. }
        | Error::Schema { .. }
        | Error::NotFound { .. }
        | Error::AlreadyExists { .. }
        | Error::Contention { .. }
        | Error::Unavailable { .. }
        | Error::OutcomeUnknown { .. }
        | Error::Timeout { .. }
        | Error::Aborted
        | Error::Closed { .. }
        | Error::Internal { .. } => Vec::new(),
    }
}

fn set(object: &Object, name: &str, value: &JsValue) {
    // A plain object takes any property.
    let _ = Reflect::set(object, &name.into(), value);
}
