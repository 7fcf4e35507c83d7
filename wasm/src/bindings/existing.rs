//! See `createTable` in `src/connection.ts`, `add` and `restore` in `src/table.ts`.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::batch::ipc;
use crate::bindings::options::number;
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::bindings::write::Append;
use crate::error::Result;
use crate::format::file::FileVersion;

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(js_name = expectSchema, unchecked_return_type = "Promise<void>")]
    pub fn expect_schema(&self, schema_ipc: Vec<u8>) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let (schema, _) = ipc::decode_stream(&schema_ipc)?;
            table.expect_schema(&schema).await.map(|()| JsValue::UNDEFINED)
        })
    }

    #[wasm_bindgen(js_name = usesV2ManifestPaths, unchecked_return_type = "Promise<boolean>")]
    pub fn uses_v2_manifest_paths(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.uses_v2_manifest_paths().map(JsValue::from_bool) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Append>")]
    pub fn overwrite(&self, schema_ipc: Option<Vec<u8>>, data_format: Option<String>) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let schema = schema_ipc.map(|ipc| ipc::decode_stream(&ipc)).transpose()?.map(|(schema, _)| schema);
            let format: Result<Option<FileVersion>> = data_format.map(|name| FileVersion::parse(&name)).transpose();
            table.overwrite_as(schema, format?).await.map(Append::new)
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn restore(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.restore().await.map(number) })
    }
}
