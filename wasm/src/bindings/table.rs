//! See `src/table.ts`.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::batch::{ipc, narrow};
use crate::bindings::options::{exact, number, object, scan_options, versions};
use crate::bindings::scan::Scan;
use crate::bindings::tasks::promise;
use crate::bindings::write::Append;
use crate::table;

#[wasm_bindgen]
pub struct Table {
    pub(super) inner: table::Table,
}

impl Table {
    pub fn new(inner: table::Table) -> Table {
        Table { inner }
    }
}

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.inner.name().to_owned()
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array>")]
    pub fn schema(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let schema = narrow::narrow_schema(table.schema().await?.as_ref());
            Ok(copied(&ipc::encode_schema(&schema)?))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn version(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.version().await.map(number) })
    }

    #[wasm_bindgen(
        unchecked_return_type = "Promise<{ version: number, timestampMs: number, totals: Record<string, number> }[]>"
    )]
    pub fn versions(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.versions().await.map(|list| versions(&list)) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn checkout(&self, version: f64) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.checkout(exact("version", version)?).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = checkoutLatest, unchecked_return_type = "Promise<void>")]
    pub fn checkout_latest(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.checkout_latest().await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = countRows, unchecked_return_type = "Promise<number>")]
    pub fn count_rows(&self, filter: Option<String>) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.count_rows(filter.as_deref()).await.map(number) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<{ deletedRows: number, version: number }>")]
    pub fn delete(&self, predicate: String) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let result = table.delete(&predicate).await?;
            Ok(object([("deletedRows", number(result.deleted_rows)), ("version", number(result.version))]))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Append>")]
    pub fn append(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.append().await.map(Append::new) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Scan>")]
    pub fn scan(&self, options: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { Scan::new(table.scan(scan_options(&options)?).await?) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn close(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.close().await.map(|()| JsValue::UNDEFINED) })
    }
}

/// Bytes of the engine as bytes of JavaScript.
pub fn copied(bytes: &[u8]) -> js_sys::Uint8Array {
    js_sys::Uint8Array::from(bytes)
}
