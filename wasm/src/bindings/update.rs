//! See `update` in `src/table.ts`.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::bindings::options::{number, object, update};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(unchecked_return_type = "Promise<{ updatedRows: number, version: number }>")]
    pub fn update(&self, options: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let result = table.update(&update(&options)?).await?;
            Ok(object([("updatedRows", number(result.updated_rows)), ("version", number(result.version))]))
        })
    }
}
