//! See `src/connection.ts`.

use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::batch::ipc;
use crate::bindings::env::HostEnv;
use crate::bindings::export::{Export, Import};
use crate::bindings::options::{consistency, create_mode};
use crate::bindings::table::{Table, copied};
use crate::bindings::tasks::promise;
use crate::bindings::write::CreateTable;
use crate::format::file::FileVersion;
use crate::store::host::{HostStore, JsStore};
use crate::{lsm, table};

#[wasm_bindgen]
pub struct Database {
    inner: table::Database,
}

#[wasm_bindgen]
impl Database {
    #[wasm_bindgen(constructor)]
    pub fn new(store: JsStore) -> Database {
        Database { inner: table::Database::new(Rc::new(HostStore::new(store)), Rc::new(HostEnv)) }
    }

    #[wasm_bindgen(js_name = tableNames, unchecked_return_type = "Promise<string[]>")]
    pub fn table_names(&self) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.table_names().await })
    }

    /// `data_format` is `FileVersion`'s name of the version of the data files.
    /// `mode` is `create` or `overwrite`.
    #[wasm_bindgen(js_name = createTable, unchecked_return_type = "Promise<CreateTable>")]
    pub fn create_table(
        &self,
        name: String,
        schema_ipc: Vec<u8>,
        data_format: Option<String>,
        mode: String,
        has_stable_row_ids: bool,
    ) -> Promise {
        let database = self.inner.clone();
        promise(async move {
            let (schema, _) = ipc::decode_stream(&schema_ipc)?;
            let format = data_format.map(|name| FileVersion::parse(&name)).transpose()?;
            let mode = create_mode(&mode)?;
            let create = database.create_table_with(&name, schema, format, mode).await?;
            Ok(CreateTable::new(create.with_stable_row_ids(has_stable_row_ids)))
        })
    }

    #[wasm_bindgen(js_name = keyedSchema, unchecked_return_type = "Promise<Uint8Array>")]
    pub fn keyed_schema(&self, schema_ipc: Vec<u8>, column: String) -> Promise {
        promise(async move {
            let (schema, _) = ipc::decode_stream(&schema_ipc)?;
            Ok(copied(&ipc::encode_schema(&lsm::keyed_schema(&schema, &column)?)?))
        })
    }

    #[wasm_bindgen(js_name = openTable, unchecked_return_type = "Promise<Table>")]
    pub fn open_table(&self, name: String, consistent: JsValue) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.open_table(&name, consistency(&consistent)?).await.map(Table::new) })
    }

    #[wasm_bindgen(js_name = dropTable, unchecked_return_type = "Promise<void>")]
    pub fn drop_table(&self, name: String) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.drop_table(&name).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = renameTable, unchecked_return_type = "Promise<void>")]
    pub fn rename_table(&self, from: String, to: String) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.rename_table(&from, &to).await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = exportTable, unchecked_return_type = "Promise<Export>")]
    pub fn export_table(&self, name: String) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.export_table(&name).await.map(Export::new) })
    }

    #[wasm_bindgen(js_name = importTable, unchecked_return_type = "Promise<Import>")]
    pub fn import_table(&self, name: String) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.import_table(&name).await.map(Import::new) })
    }

    /// Renews leases and sweeps; to be called every 10 seconds while `holdsLeases`.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn maintain(&self) -> Promise {
        let database = self.inner.clone();
        promise(async move { database.maintain().await.map(|()| JsValue::UNDEFINED) })
    }

    #[wasm_bindgen(js_name = holdsLeases)]
    pub fn holds_leases(&self) -> bool {
        self.inner.holds_leases()
    }
}
