//! See `src/merge.ts`.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::batch::ipc;
use crate::bindings::handle::Handle;
use crate::bindings::options::{merge_options, number, object};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::table;

#[wasm_bindgen]
pub struct MergeInsert {
    inner: Handle<table::MergeInsert>,
}

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(js_name = mergeInsert, unchecked_return_type = "Promise<MergeInsert>")]
    pub fn merge_insert(&self, options: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let inner = table.merge_insert(merge_options(&options)?).await?;
            Ok(MergeInsert { inner: Handle::new("the merge insert", inner) })
        })
    }
}

#[wasm_bindgen]
impl MergeInsert {
    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn write(&self, ipc: Vec<u8>) -> Promise {
        let merge = self.inner.clone();
        promise(async move {
            let mut rows = 0;
            for batch in ipc::decode_stream(&ipc)?.1 {
                rows += batch.num_rows() as u64;
                merge.with(async |merge| merge.write(&batch)).await?;
            }
            Ok(number(rows))
        })
    }

    #[wasm_bindgen(
        unchecked_return_type = "Promise<{ version: number, insertedRows: number, updatedRows: number, deletedRows: number, attempts: number }>"
    )]
    pub fn finish(&self) -> Promise {
        let merge = self.inner.clone();
        promise(async move {
            let result = merge.take()?.finish().await?;
            Ok(object([
                ("version", number(result.version)),
                ("insertedRows", number(result.inserted_rows)),
                ("updatedRows", number(result.updated_rows)),
                ("deletedRows", number(result.deleted_rows)),
                ("attempts", number(u64::from(result.attempts))),
            ]))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn abort(&self) -> Promise {
        let merge = self.inner.clone();
        promise(async move { merge.take()?.abort().await.map(|()| JsValue::UNDEFINED) })
    }
}
