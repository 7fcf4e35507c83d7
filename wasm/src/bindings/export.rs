//! See `exportTable` and `importTable` in `src/connection.ts`.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use crate::bindings::handle::Handle;
use crate::bindings::options::{consistency, exact, number, object};
use crate::bindings::table::{Table, copied};
use crate::bindings::tasks::promise;
use crate::table;

#[wasm_bindgen]
pub struct Export {
    inner: Handle<table::Export>,
    entries: Vec<table::ExportEntry>,
}

impl Export {
    pub fn new(inner: table::Export) -> Export {
        let entries = inner.entries().to_vec();
        Export { inner: Handle::new("the export", inner), entries }
    }
}

#[wasm_bindgen]
impl Export {
    #[wasm_bindgen(unchecked_return_type = "{ path: string, sizeBytes: number }[]")]
    pub fn entries(&self) -> Array {
        let entry = |entry: &table::ExportEntry| {
            JsValue::from(object([("path", entry.path.as_str().into()), ("sizeBytes", number(entry.size_bytes))]))
        };
        self.entries.iter().map(entry).collect()
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array>")]
    pub fn read(&self, path: String, offset: f64, length: f64) -> Promise {
        let export = self.inner.clone();
        promise(async move {
            let (offset, length) = (exact("offset", offset)?, exact("length", length)?);
            let bytes = export.with(async |export| export.read(&path, offset, length).await).await?;
            Ok(copied(&bytes))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn close(&self) -> Promise {
        let export = self.inner.clone();
        promise(async move { export.take()?.close().await.map(|()| JsValue::UNDEFINED) })
    }
}

#[wasm_bindgen]
pub struct Import {
    inner: Handle<table::Import>,
}

impl Import {
    pub fn new(inner: table::Import) -> Import {
        Import { inner: Handle::new("the import", inner) }
    }
}

#[wasm_bindgen]
impl Import {
    #[wasm_bindgen(js_name = beginFile, unchecked_return_type = "Promise<void>")]
    pub fn begin_file(&self, path: String) -> Promise {
        let import = self.inner.clone();
        promise(
            async move { import.with(async |import| import.begin_file(&path).await).await.map(|()| JsValue::UNDEFINED) },
        )
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn write(&self, bytes: Vec<u8>) -> Promise {
        let import = self.inner.clone();
        promise(async move {
            import.with(async |import| import.write(bytes.into()).await).await.map(|()| JsValue::UNDEFINED)
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Table>")]
    pub fn finish(&self, consistent: JsValue) -> Promise {
        let import = self.inner.clone();
        promise(async move { import.take()?.finish(consistency(&consistent)?).await.map(Table::new) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn abort(&self) -> Promise {
        let import = self.inner.clone();
        promise(async move { import.take()?.abort().await.map(|()| JsValue::UNDEFINED) })
    }
}
