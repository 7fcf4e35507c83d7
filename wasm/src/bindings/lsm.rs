//! See `src/lsm.ts`.

use js_sys::{Array, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;

use crate::bindings::options::{Options, number, object, wrong_type};
use crate::bindings::table::Table;
use crate::bindings::tasks::promise;
use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::lsm::{GenerationStats, LsmStats, ShardStats, SpecKind, SpecOptions};

#[wasm_bindgen]
impl Table {
    #[wasm_bindgen(js_name = setUnenforcedPrimaryKey, unchecked_return_type = "Promise<number>")]
    pub fn set_unenforced_primary_key(&self, column: String) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.set_unenforced_primary_key(&column).await.map(number) })
    }

    #[wasm_bindgen(js_name = lsmWriteSpec, unchecked_return_type = "Promise<unknown>")]
    pub fn lsm_write_spec(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { Ok(table.lsm_write_spec().await?.map_or(JsValue::UNDEFINED, |spec| spec_to_js(&spec))) })
    }

    #[wasm_bindgen(js_name = setLsmWriteSpec, unchecked_return_type = "Promise<number>")]
    pub fn set_lsm_write_spec(&self, spec: JsValue) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.set_lsm_write_spec(&spec_from_js(&spec)?).await.map(number) })
    }

    #[wasm_bindgen(js_name = unsetLsmWriteSpec, unchecked_return_type = "Promise<number>")]
    pub fn unset_lsm_write_spec(&self) -> Promise {
        let table = self.inner.clone();
        promise(async move { table.unset_lsm_write_spec().await.map(number) })
    }

    #[wasm_bindgen(js_name = lsmStats, unchecked_return_type = "Promise<unknown>")]
    pub fn lsm_stats(&self, with_rows: bool) -> Promise {
        let table = self.inner.clone();
        promise(
            async move { Ok(table.lsm_stats(with_rows).await?.map_or(JsValue::UNDEFINED, |stats| stats_to_js(&stats))) },
        )
    }
}

/// `LsmWriteSpec`, checked.
fn spec_from_js(js: &JsValue) -> Result<SpecOptions> {
    let known = ["specType", "column", "numBuckets", "maintainedIndexes", "writerConfigDefaults"];
    let options = Options::new(js, &known)?;
    let column = || options.string("column")?.ok_or_else(|| wrong_type("column", "a string"));
    let kind = match options.string("specType")?.as_deref() {
        Some("bucket") => {
            let buckets = options.count("numBuckets")?.unwrap_or_default();
            SpecKind::Bucket { column: column()?, buckets: u32::try_from(buckets).unwrap_or(u32::MAX) }
        }
        Some("identity") => SpecKind::Identity { column: column()? },
        Some("unsharded") => SpecKind::Unsharded,
        _ => return Err(Error::invalid_input("specType is none of bucket, identity and unsharded")),
    };
    let mut config = SortedMap::new();
    if let Some(defaults) = options.get("writerConfigDefaults") {
        let defaults = defaults.dyn_into::<Object>().map_err(|_| wrong_type("writerConfigDefaults", "an object"))?;
        for key in Object::keys(&defaults) {
            let value = Reflect::get(&defaults, &key).ok().and_then(|value| value.as_string());
            let value = value.ok_or_else(|| wrong_type("writerConfigDefaults", "an object of strings"))?;
            config.insert(key.as_string().unwrap_or_default(), value);
        }
    }
    Ok(SpecOptions { kind, maintained_indexes: options.strings("maintainedIndexes")?, config })
}

fn spec_to_js(spec: &SpecOptions) -> JsValue {
    let mut fields: Vec<(&str, JsValue)> = match &spec.kind {
        SpecKind::Bucket { column, buckets } => vec![
            ("specType", "bucket".into()),
            ("column", column.as_str().into()),
            ("numBuckets", number(u64::from(*buckets))),
        ],
        SpecKind::Identity { column } => vec![("specType", "identity".into()), ("column", column.as_str().into())],
        SpecKind::Unsharded => vec![("specType", "unsharded".into())],
    };
    let names: Array = spec.maintained_indexes.iter().flatten().map(|name| JsValue::from(name.as_str())).collect();
    let config = object(spec.config.iter().map(|(key, value)| (key.as_str(), value.as_str().into())));
    fields.extend([("maintainedIndexes", names.into()), ("writerConfigDefaults", config.into())]);
    object(fields).into()
}

/// `LsmStats`.
fn stats_to_js(stats: &LsmStats) -> JsValue {
    let buckets: Array = stats.shards.iter().map(shard).collect();
    object([("buckets", buckets.into())]).into()
}

fn shard(shard: &ShardStats) -> JsValue {
    let generations: Array = shard.generations.iter().map(generation).collect();
    let id = shard.id.to_string();
    object([
        ("shardId", id.into()),
        ("status", if shard.is_sealed { "Sealed" } else { "Active" }.into()),
        ("writerEpoch", number(shard.writer_epoch)),
        ("manifestVersion", number(shard.manifest_version)),
        ("currentGeneration", number(shard.current_generation)),
        ("replayAfterWalEntryPosition", number(shard.replay_after)),
        ("walEntryPositionLastSeen", number(shard.last_position)),
        ("generations", generations.into()),
        ("compacting", JsValue::FALSE),
    ])
    .into()
}

fn generation(found: &GenerationStats) -> JsValue {
    let optional = [("bytes", found.size_bytes), ("rows", found.live_rows)];
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, number(value?))));
    object([("generation", number(found.generation))].into_iter().chain(optional)).into()
}
