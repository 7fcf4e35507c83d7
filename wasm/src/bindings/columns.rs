//! See `src/columns.ts`.

use js_sys::{Array, Object, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::batch::ipc;
use crate::bindings::options::{Options, number, wrong_type};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::error::{Error, Result};
use crate::table::{Alteration, ComputedColumn, FieldMetadata, parse_type};

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(js_name = addNullColumns, unchecked_return_type = "Promise<number>")]
    pub fn add_null_columns(&self, schema_ipc: Vec<u8>) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.add_null_columns(&ipc::decode_stream(&schema_ipc)?.0).await.map(number) })
    }

    #[wasm_bindgen(js_name = addComputedColumns, unchecked_return_type = "Promise<number>")]
    pub fn add_computed_columns(&self, columns: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.add_computed_columns(&list(&columns, computed_column)?).await.map(number) })
    }

    #[wasm_bindgen(js_name = alterColumns, unchecked_return_type = "Promise<number>")]
    pub fn alter_columns(&self, changes: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.alter_columns(&list(&changes, alteration)?).await.map(number) })
    }

    #[wasm_bindgen(js_name = dropColumns, unchecked_return_type = "Promise<number>")]
    pub fn drop_columns(&self, paths: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.drop_columns(&list(&paths, text)?).await.map(number) })
    }

    #[wasm_bindgen(js_name = updateFieldMetadata, unchecked_return_type = "Promise<number>")]
    pub fn update_field_metadata(&self, updates: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.update_field_metadata(&list(&updates, field_metadata)?).await.map(number) })
    }
}

fn list<T>(js: &JsValue, item: fn(&JsValue) -> Result<T>) -> Result<Vec<T>> {
    let array = js.dyn_ref::<Array>().ok_or_else(|| Error::invalid_input("columns must be an array"))?;
    array.iter().map(|each| item(&each)).collect()
}

fn text(js: &JsValue) -> Result<String> {
    js.as_string().ok_or_else(|| Error::invalid_input("a path must be a string"))
}

fn required(options: &Options<'_>, name: &str) -> Result<String> {
    options.string(name)?.ok_or_else(|| wrong_type(name, "a string"))
}

fn computed_column(js: &JsValue) -> Result<ComputedColumn> {
    let options = Options::new(js, &["name", "valueSql"])?;
    Ok(ComputedColumn { name: required(&options, "name")?, value_sql: required(&options, "valueSql")? })
}

fn alteration(js: &JsValue) -> Result<Alteration> {
    let options = Options::new(js, &["path", "rename", "nullable", "dataType", "dataTypeIpc"])?;
    let data_type = match (options.string("dataType")?, options.get("dataTypeIpc")) {
        (Some(text), _) => Some(parse_type(&text)?),
        (None, Some(ipc)) => {
            let bytes = ipc.dyn_into::<Uint8Array>().map_err(|_| wrong_type("dataTypeIpc", "a Uint8Array"))?;
            let (schema, _) = ipc::decode_stream(&bytes.to_vec())?;
            schema.fields().first().map(|field| field.data_type().clone())
        }
        (None, None) => None,
    };
    Ok(Alteration {
        path: required(&options, "path")?,
        rename: options.string("rename")?,
        nullable: options.flag("nullable")?,
        data_type,
    })
}

fn field_metadata(js: &JsValue) -> Result<FieldMetadata> {
    let options = Options::new(js, &["path", "metadata", "replace"])?;
    let metadata = options.get("metadata").and_then(|value| value.dyn_into::<Object>().ok());
    let metadata = metadata.ok_or_else(|| wrong_type("metadata", "an object"))?;
    let entry = |pair: JsValue| {
        let pair = Array::from(&pair);
        let value = pair.get(1);
        let text = value.as_string();
        if text.is_none() && !value.is_null() {
            return Err(wrong_type("metadata", "an object of strings and nulls"));
        }
        Ok((pair.get(0).as_string().unwrap_or_default(), text))
    };
    Ok(FieldMetadata {
        path: required(&options, "path")?,
        entries: Object::entries(&metadata).iter().map(entry).collect::<Result<_>>()?,
        replaces: options.flag("replace")?.unwrap_or_default(),
    })
}
