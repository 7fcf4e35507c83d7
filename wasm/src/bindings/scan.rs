//! See `BatchStream` in `src/query.ts`.

use arrow_array::RecordBatch;
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::batch::{ipc, narrow};
use crate::bindings::handle::Handle;
use crate::bindings::table::copied;
use crate::bindings::tasks::promise;
use crate::error::Result;
use crate::table;

#[wasm_bindgen]
pub struct Scan {
    inner: Handle<table::Scan>,
    schema_ipc: Vec<u8>,
}

impl Scan {
    pub fn new(inner: table::Scan) -> Result<Scan> {
        let schema_ipc = ipc::encode_schema(&narrow::narrow_schema(&inner.schema()))?;
        Ok(Scan { inner: Handle::new("the scan", inner), schema_ipc })
    }
}

#[wasm_bindgen]
impl Scan {
    #[wasm_bindgen(js_name = schemaIpc)]
    pub fn schema_ipc(&self) -> Uint8Array {
        copied(&self.schema_ipc)
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<Uint8Array | undefined>")]
    pub fn next(&self) -> Promise {
        let scan = self.inner.clone();
        promise(async move {
            let batch = scan.with(async |scan| scan.next().await).await?;
            let encode = |batch: RecordBatch| {
                let batch = narrow::narrow_batch(&batch)?;
                ipc::encode_batches(&batch.schema(), std::slice::from_ref(&batch))
            };
            let bytes = batch.map(encode).transpose()?;
            Ok(bytes.map_or(JsValue::UNDEFINED, |bytes| copied(&bytes).into()))
        })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn close(&self) -> Promise {
        let scan = self.inner.clone();
        promise(async move { scan.take()?.close().await.map(|()| JsValue::UNDEFINED) })
    }
}
