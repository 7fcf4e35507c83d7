//! See `src/table.ts` and `src/maintenance.ts`.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::bindings::options::{cleanup_options, number, object};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::table::{CleanupStats, CompactResult, OptimizeOptions, TableStats};

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(unchecked_return_type = "Promise<{ \
            compaction: { fragmentsRemoved: number, fragmentsAdded: number, filesRemoved: number, filesAdded: number }, \
            prune: { bytesRemoved: number, oldVersionsRemoved: number } }>")]
    pub fn optimize(&self, cleanup: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move {
            let options = OptimizeOptions { cleanup: cleanup_options(&cleanup)?, ..OptimizeOptions::default() };
            let done = table.optimize(&options).await?;
            Ok(object([("compaction", compaction(&done.compaction)), ("prune", prune(&done.cleanup))]))
        })
    }

    /// Whether anything was done.
    #[wasm_bindgen(unchecked_return_type = "Promise<boolean>")]
    pub fn maintain(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.maintain().await.map(|done| done.is_some()) })
    }

    #[wasm_bindgen(unchecked_return_type = "Promise<{ totalBytes: number, numRows: number, numIndices: number, \
            fragmentStats: { numFragments: number, numSmallFragments: number, lengths: \
                { min: number, max: number, mean: number, p25: number, p50: number, p75: number, p99: number } } }>")]
    pub fn stats(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.stats().await.map(|found| stats(&found)) })
    }
}

fn compaction(done: &CompactResult) -> JsValue {
    let fields = [
        ("fragmentsRemoved", number(done.fragments_removed)),
        ("fragmentsAdded", number(done.fragments_added)),
        ("filesRemoved", number(done.files_removed)),
        ("filesAdded", number(done.files_added)),
    ];
    object(fields).into()
}

fn prune(done: &CleanupStats) -> JsValue {
    let fields =
        [("bytesRemoved", number(done.bytes_removed)), ("oldVersionsRemoved", number(done.old_versions_removed))];
    object(fields).into()
}

fn stats(found: &TableStats) -> JsValue {
    let rows = &found.fragment_rows;
    let lengths = [
        ("min", rows.min),
        ("max", rows.max),
        ("mean", rows.mean),
        ("p25", rows.p25),
        ("p50", rows.p50),
        ("p75", rows.p75),
        ("p99", rows.p99),
    ];
    let fragments = [
        ("numFragments", number(found.fragment_count)),
        ("numSmallFragments", number(found.small_fragment_count)),
        ("lengths", object(lengths.map(|(name, length)| (name, number(length)))).into()),
    ];
    let fields = [
        ("totalBytes", number(found.total_bytes)),
        ("numRows", number(found.live_rows)),
        ("numIndices", number(found.index_count)),
        ("fragmentStats", object(fragments).into()),
    ];
    object(fields).into()
}
