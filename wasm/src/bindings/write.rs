//! See `add` in `src/table.ts` and `createTable` in `src/connection.ts`.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::batch::ipc;
use crate::bindings::handle::Handle;
use crate::bindings::options::{consistency, number};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::table;

#[wasm_bindgen]
pub struct Append {
    inner: Handle<table::Append>,
}

impl Append {
    pub fn new(inner: table::Append) -> Append {
        Append { inner: Handle::new("the append", inner) }
    }
}

#[wasm_bindgen]
impl Append {
    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn write(&self, ipc: Vec<u8>) -> Promise {
        let append = self.inner.clone();
        promise(async move {
            let mut rows = 0;
            for batch in ipc::decode_stream(&ipc)?.1 {
                append.with(async |append| append.write(&batch).await).await?;
                rows += batch.num_rows();
            }
            Ok(number(rows as u64))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn finish(&self) -> Promise {
        let append = self.inner.clone();
        promise(async move { append.take()?.finish().await.map(number) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn abort(&self) -> Promise {
        let append = self.inner.clone();
        promise(async move { append.take()?.abort().await.map(|()| JsValue::UNDEFINED) })
    }
}

#[wasm_bindgen]
pub struct CreateTable {
    inner: Handle<table::CreateTable>,
}

impl CreateTable {
    pub fn new(inner: table::CreateTable) -> CreateTable {
        CreateTable { inner: Handle::new("the new table", inner) }
    }
}

#[wasm_bindgen]
impl CreateTable {
    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn write(&self, ipc: Vec<u8>) -> Promise {
        let create = self.inner.clone();
        promise(async move {
            let mut rows = 0;
            for batch in ipc::decode_stream(&ipc)?.1 {
                create.with(async |create| create.write(&batch).await).await?;
                rows += batch.num_rows();
            }
            Ok(number(rows as u64))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Table>")]
    pub fn finish(&self, consistent: JsValue) -> Promise {
        let create = self.inner.clone();
        promise(async move { create.take()?.finish(consistency(&consistent)?).await.map(Table::new) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn abort(&self) -> Promise {
        let create = self.inner.clone();
        promise(async move { create.take()?.abort().await.map(|()| JsValue::UNDEFINED) })
    }
}
