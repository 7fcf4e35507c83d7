//! The write spec of a table: set, read, taken away.
//!
//! 1. Set: what an earlier spec left below `_mem_wal` goes first; then one commit that adds the spec's entry to the index section.
//! 2. Unset: refused while the log has rows that the base table lacks; one commit without the entry; then the shards go.
//!
//! A crash after the commit of 2 leaves shards that nobody reads; step 1 of the next spec takes them.

use std::rc::Rc;

use arrow_schema::DataType;
use async_trait::async_trait;

use crate::collections::{SortedMap, SortedSet};
use crate::env::{now_ms, random_uuid};
use crate::error::{Error, Result};
use crate::format::proto::{IndexMetadata, Uuid};
use crate::format::table::{Field, FieldId, Manifest, Operation, Schema};
use crate::format::wal::spec::{INDEX_NAME, MAX_BUCKETS};
use crate::format::wal::{Sharding, WriteSpec};
use crate::lsm::route::Router;
use crate::table::commit::{Change, Execution};
use crate::table::database::Engine;
use crate::table::merged::primary_key;
use crate::table::snapshot::Snapshot;
use crate::table::{Table, fresh};

/// What of an index's type makes it one that writers of a log can keep: `BTree`, `Inverted`, `Vector`.
const MAINTAINED: [&str; 3] = ["BTreeIndexDetails", "InvertedIndexDetails", "VectorIndexDetails"];

/// How rows are spread over shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecKind {
    /// By a hash of the primary key.
    Bucket { column: String, buckets: u32 },
    /// By the value of a column, which must follow from the primary key: a shard of its own for each value.
    Identity { column: String },
    /// Not at all.
    Unsharded,
}

/// A write spec in the words of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecOptions {
    pub kind: SpecKind,
    /// Names of indices that writers keep up to date; `None` = every one that there is.
    pub maintained_indexes: Option<Vec<String>>,
    pub config: SortedMap<String, String>,
}

impl Table {
    /// The write spec of the version that the handle stands on.
    ///
    /// # Errors
    /// `NotSupported` for a spec of a kind that this build does not know; `Corrupt`.
    pub async fn lsm_write_spec(&self) -> Result<Option<SpecOptions>> {
        let snapshot = self.current().await?;
        let Some(spec) = WriteSpec::of(&snapshot.manifest)? else { return Ok(None) };
        let column = |id: FieldId| match snapshot.manifest.schema.field_by_id(id) {
            Some(field) => Ok(field.name.clone()),
            None => Err(Error::corrupt(format!("{INDEX_NAME}: there is no field {}", id.0))),
        };
        let kind = match spec.sharding {
            Sharding::Bucket { field, buckets } => SpecKind::Bucket { column: column(field)?, buckets },
            Sharding::Identity { field, .. } => SpecKind::Identity { column: column(field)? },
            Sharding::Unsharded => SpecKind::Unsharded,
        };
        Ok(Some(SpecOptions { kind, maintained_indexes: Some(spec.maintained_indexes), config: spec.config }))
    }

    /// Sets the table's write spec. The version that has it.
    ///
    /// # Errors
    /// `InvalidInput` when there is one, without a primary key, for columns and indices that are not there or cannot serve, and on a handle
    /// that is checked out; `Contention`, `TableNotFound`, `OutcomeUnknown` as an append.
    pub async fn set_lsm_write_spec(&self, options: &SpecOptions) -> Result<u64> {
        self.evolve(&mut Set { engine: self.engine(), options }).await
    }

    /// Takes the table's write spec away, and its shards. The version without it.
    ///
    /// # Errors
    /// `InvalidInput` when there is none; `NotSupported` while the log has rows that the base table lacks.
    pub async fn unset_lsm_write_spec(&self) -> Result<u64> {
        self.evolve(&mut Unset).await
    }
}

struct Set<'a> {
    engine: &'a Rc<Engine>,
    options: &'a SpecOptions,
}

#[async_trait(?Send)]
impl Execution for Set<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let manifest = &base.manifest;
        if WriteSpec::find(manifest)?.is_some() {
            return Err(Error::invalid_input(
                "set_lsm_write_spec: an LSM write spec is already set on this table; mutation is not supported",
            ));
        }
        let spec = WriteSpec {
            sharding: sharding(&manifest.schema, &self.options.kind)?,
            maintained_indexes: maintained(manifest, self.options.maintained_indexes.as_deref())?,
            config: self.options.config.clone(),
            compacted: SortedMap::new(),
        };
        fresh::retire(self.engine, &base.dir).await?;
        let env = self.engine.env.as_ref();
        let index = IndexMetadata {
            uuid: Some(Uuid { bytes: random_uuid(env).to_vec() }),
            name: INDEX_NAME.to_owned(),
            dataset_version: base.version(),
            index_details: Some(spec.encode()),
            index_version: Some(0),
            created_at: Some(now_ms(env)),
            ..IndexMetadata::default()
        };
        Ok(Some(Change::of(Operation::CreateIndex { new: vec![index], removed: Vec::new() })))
    }
}

struct Unset;

#[async_trait(?Send)]
impl Execution for Unset {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let index = WriteSpec::find(&base.manifest)?
            .ok_or_else(|| Error::invalid_input("unset_lsm_write_spec: no LSM write spec is set on this table"))?;
        Ok(Some(Change::of(Operation::CreateIndex { new: Vec::new(), removed: vec![index] })))
    }
}

fn sharding(schema: &Schema, kind: &SpecKind) -> Result<Sharding> {
    let key = primary_key(schema)?.ok_or_else(|| {
        Error::invalid_input(
            "set_lsm_write_spec: the table has no unenforced primary key; set one with set_unenforced_primary_key",
        )
    })?;
    match kind {
        SpecKind::Bucket { column, buckets } => {
            if !(1..=MAX_BUCKETS).contains(buckets) {
                let text = format!("bucket_sharding: num_buckets must be in [1, {MAX_BUCKETS}], got {buckets}");
                return Err(Error::invalid_input(text));
            }
            let field = shard_key(schema, column, "bucket_sharding", Router::Bucket(*buckets))?;
            if field.id != key.id {
                return Err(Error::invalid_input(format!(
                    "bucket_sharding: column '{column}' is not the unenforced primary key '{}': rows of one key could be in \
                     several buckets",
                    key.name
                )));
            }
            Ok(Sharding::Bucket { field: field.id, buckets: *buckets })
        }
        SpecKind::Identity { column } => {
            let field = shard_key(schema, column, "identity_sharding", Router::Identity)?;
            Ok(Sharding::Identity { field: field.id, result_type: result_type(&field.data_type) })
        }
        SpecKind::Unsharded => Ok(Sharding::Unsharded),
    }
}

fn shard_key<'a>(schema: &'a Schema, column: &str, what: &str, router: Router) -> Result<&'a Field> {
    let field = schema.fields.iter().find(|field| field.name == column);
    let field =
        field.ok_or_else(|| Error::invalid_input(format!("{what}: column '{column}' not found on the dataset")))?;
    if !router.takes(&field.data_type) {
        return Err(Error::invalid_input(format!(
            "{what}: column '{column}' has type {}, which cannot be used as a shard key",
            field.data_type
        )));
    }
    Ok(field)
}

/// The name that the entry has for a type whose values are shards.
fn result_type(data_type: &DataType) -> String {
    match data_type {
        DataType::LargeUtf8 => "large_utf8".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// The indices that writers are to keep, each of which is there and can be kept.
fn maintained(manifest: &Manifest, names: Option<&[String]>) -> Result<Vec<String>> {
    let indices = manifest.indices()?;
    let of_columns = indices.iter().filter(|index| !index.name.starts_with("__lance"));
    let known: SortedSet<&str> = of_columns.map(|index| index.name.as_str()).collect();
    let all = || known.iter().copied().collect::<Vec<_>>().join(", ");
    let check = |name: &str| {
        let Some(index) = indices.iter().find(|index| index.name == name && known.contains(name)) else {
            let there = if known.is_empty() { "no indexes".to_owned() } else { format!("[{}]", all()) };
            return Some(format!("maintained index '{name}' does not exist on this table; it has {there}"));
        };
        let url = index.index_details.as_ref().map_or("", |details| details.type_url.as_str());
        (!is_maintainable(manifest, index, url)).then(|| {
            format!(
                "index '{name}' has type {url}, which the MemWAL cannot maintain. Supported: BTree, Inverted, Vector"
            )
        })
    };
    let wanted = match names {
        Some(names) => names.to_vec(),
        None => known.iter().map(|name| (*name).to_owned()).collect(),
    };
    match wanted.iter().find_map(|name| check(name)) {
        None => Ok(wanted),
        Some(fault) if names.is_some() => Err(Error::invalid_input(fault)),
        Some(fault) => Err(Error::invalid_input(format!(
            "cannot maintain every index on this table: {fault}. Set maintained_indexes explicitly to choose from [{}]",
            all()
        ))),
    }
}

fn is_maintainable(manifest: &Manifest, index: &IndexMetadata, url: &str) -> bool {
    let kind = url.rsplit('.').next().unwrap_or_default();
    let is_vector = || {
        let field = index.fields.first().and_then(|id| manifest.schema.field_by_id(FieldId(*id)));
        let item = field.map(|field| &field.data_type);
        matches!(item, Some(DataType::FixedSizeList(item, _)) if item.data_type() == &DataType::Float32)
    };
    MAINTAINED.contains(&kind) && (kind != "VectorIndexDetails" || is_vector())
}
