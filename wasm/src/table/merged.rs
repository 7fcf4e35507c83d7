//! Merged: a version together with the rows that lie in the shards beside it, as one version that nobody wrote.
//!
//! The fragments of the version come first, as they are; then those of the generations, the oldest first; then what is in the logs, in
//! memory. A row is live where no newer one of its key is, and deletes nothing itself: that is told by deletion vectors, so that scans,
//! filters and takes need not know. What is newer: of a shard its log, its generations from the last one down, the version. A key is in one
//! shard only. Rows of the version that have one key among themselves all stay: nobody enforces the key.
//!
//! The keys of all rows that are newer than the version are kept, and of the version the key column is read; no generation is loaded.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::DataType;
use roaring::RoaringBitmap;

use crate::batch::keys::Keys;
use crate::batch::pick::{Pick, pick};
use crate::error::{Error, Result};
use crate::format::file::layout::interner::Interner;
use crate::format::file::null_array;
use crate::format::table::fragment::DeletionFileKind;
use crate::format::table::{DataFile, DeletionFile, DeletionVector, Field, FieldId, Fragment, FragmentId, Schema};
use crate::format::wal::entry::TOMBSTONE;
use crate::format::wal::{ShardId, SsTable, WalEntry, WriteSpec, layout};
use crate::store::{DirId, ListOptions, Path};
use crate::table::database::Engine;
use crate::table::fragment_rows::{FragmentRows, MAX_READ_ROWS, deletion_vector, row_count, split_rows};
use crate::table::fresh::Shard;
use crate::table::snapshot::Snapshot;
use crate::table::{lineage, paths, versions};

/// Of each fragment in what it differs from what its manifest says.
pub(crate) type Parts = Vec<Option<Part>>;

/// Of one fragment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// The folder of the table that its files are of; `None` = this one.
    pub(crate) root: Option<Path>,
    /// Its rows, where they are in no file.
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) deleted: Option<Rc<DeletionVector>>,
}

impl Part {
    /// Columns of rows in memory.
    ///
    /// # Errors
    /// `Corrupt` for a column that is not there.
    pub(crate) fn read(&self, fields: &[&Field], rows: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        let (mut starts, mut end) = (Vec::new(), 0u64);
        for batch in &self.batches {
            starts.push(end);
            end += batch.num_rows() as u64;
        }
        let place = |row: u64| {
            let at = starts.partition_point(|start| *start <= row).checked_sub(1)?;
            Some((at, usize::try_from(row - starts.get(at)?).ok()?))
        };
        let picks: Vec<Pick> = rows.iter().cloned().flatten().map(place).collect();
        fields
            .iter()
            .map(|field| {
                // A column that came since is null in rows from before it.
                let column = |batch: &RecordBatch| match batch.column_by_name(&field.name) {
                    None if field.nullable => null_array(&field.data_type, batch.num_rows()),
                    column => column.cloned().ok_or_else(|| missing(&field.name)),
                };
                let columns: Vec<ArrayRef> = self.batches.iter().map(column).collect::<Result<_>>()?;
                let data_type = columns.first().map_or(DataType::Null, |column| column.data_type().clone());
                let column = pick(&columns, &picks, &data_type).map_err(|_| missing(&field.name))?;
                narrowed(&column, &field.data_type).ok_or_else(|| missing(&field.name))
            })
            .collect()
    }
}

fn missing(name: &str) -> Error {
    Error::corrupt(format!("entries of the write-ahead log lack the column {name:?} as the table has it"))
}

/// A column with no other members than a type has.
fn narrowed(column: &ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    if column.data_type() == data_type {
        return Some(column.clone());
    }
    let (DataType::Struct(wanted), Some(members)) = (data_type, column.as_struct_opt()) else { return None };
    let narrow = |field: &arrow_schema::FieldRef| {
        members.column_by_name(field.name()).and_then(|member| narrowed(member, field.data_type()))
    };
    let columns: Vec<ArrayRef> = wanted.iter().map(narrow).collect::<Option<_>>()?;
    let array = StructArray::try_new(wanted.clone(), columns, members.nulls().cloned()).ok()?;
    Some(Arc::new(array))
}

/// The key of a schema; `None` without one.
///
/// # Errors
/// `NotSupported` for a key of several columns, or of one inside another.
pub(crate) fn primary_key(schema: &Schema) -> Result<Option<&Field>> {
    let all = schema.all_fields().into_iter().filter(|field| field.primary_key_position > 0).count();
    match (all, schema.fields.iter().find(|field| field.primary_key_position > 0)) {
        (0, _) => Ok(None),
        (1, Some(field)) => Ok(Some(field)),
        _ => Err(Error::not_supported("an LSM write spec with a primary key of several columns")),
    }
}

/// The newest version of a generation's table.
///
/// # Errors
/// `NotFound` when its folder is not there; `Corrupt` for a table whose rows do not say what they delete.
pub(crate) async fn generation(engine: &Engine, dir: &DirId, shard: &ShardId, table: &SsTable) -> Result<Rc<Snapshot>> {
    let folder = Path::default().join(&layout::shard_folder(shard)).join(&table.folder);
    let options = ListOptions { shallow: true, ..ListOptions::default() };
    let listed = engine.store.list(dir, &folder.join(paths::versions_folder().as_str()), &options).await?;
    let newest = versions::sorted(&listed.objects)?.pop();
    let newest = newest.ok_or_else(|| Error::NotFound { what: format!("generation {folder}") })?;
    let snapshot = versions::load(engine, dir, &newest).await?;
    let tombstone = snapshot.manifest.schema.field(TOMBSTONE);
    if tombstone.is_none_or(|field| field.data_type != DataType::Boolean) {
        return Err(Error::corrupt(format!("a generation without the column {TOMBSTONE:?}")).at(&snapshot.path));
    }
    Ok(snapshot)
}

/// A version with the rows of its shards.
pub(crate) struct Merged {
    pub(crate) view: Rc<Snapshot>,
    /// Whether each entry of the logs was whole.
    pub(crate) is_whole: bool,
}

/// Merges a version with the rows of its shards.
///
/// # Errors
/// `Corrupt`; `NotFound` for a generation or an entry that went meanwhile; `NotSupported` for a table without a key of one column.
pub(crate) async fn merge(
    engine: &Rc<Engine>,
    base: &Rc<Snapshot>,
    spec: &WriteSpec,
    shards: &[Shard],
) -> Result<Merged> {
    if shards.iter().all(|shard| shard.tail.is_empty() && shard.manifest.sstables.is_empty()) {
        return Ok(Merged { view: base.clone(), is_whole: true });
    }
    let key = primary_key(&base.manifest.schema)?;
    let key = key.ok_or_else(|| Error::not_supported("reads of a write-ahead log whose table has no primary key"))?;
    let mut merge = Merge { engine, base, key, seen: Interner::new(), newest_first: Vec::new(), is_whole: true };
    for shard in shards {
        merge.add_log(shard).await?;
        let watermark = spec.compacted.get(&shard.id).copied().unwrap_or(0);
        for table in shard.manifest.sstables.iter().rev().filter(|table| table.generation > watermark) {
            merge.add_generation(&shard.id, table).await?;
        }
    }
    merge.finish().await
}

struct Merge<'a> {
    engine: &'a Rc<Engine>,
    base: &'a Rc<Snapshot>,
    key: &'a Field,
    /// Keys of what was added.
    seen: Interner,
    newest_first: Vec<(Fragment, Part)>,
    is_whole: bool,
}

impl Merge<'_> {
    async fn add_log(&mut self, shard: &Shard) -> Result<()> {
        let mut batches: Vec<RecordBatch> = Vec::new();
        for position in &shard.tail {
            let path = Path::default().join(&layout::entry_path(&shard.id, *position));
            let bytes = self.engine.store.get(&self.base.dir, &path).await?;
            match WalEntry::decode(&bytes) {
                Ok(entry) => batches.extend(entry.batches.into_iter().filter(|batch| batch.num_rows() > 0)),
                // The last one may be cut off: then nobody was told that it is there.
                Err(_) if shard.tail.last() == Some(position) => self.is_whole = false,
                Err(error) => return Err(error.at(&path)),
            }
        }
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows == 0 {
            return Ok(());
        }
        let mut hidden = RoaringBitmap::new();
        let mut end = rows;
        for batch in batches.iter().rev() {
            end -= batch.num_rows() as u64;
            let column = |name: &str| batch.column_by_name(name).ok_or_else(|| missing(name));
            let offsets: Vec<u64> = (end..).take(batch.num_rows()).collect();
            self.add_rows(column(&self.key.name)?, column(TOMBSTONE)?, &offsets, &mut hidden)?;
        }
        let part = Part { batches, ..Part::default() };
        self.newest_first.push((fragment(Vec::new(), rows), with_deleted(part, hidden)));
        Ok(())
    }

    async fn add_generation(&mut self, shard: &ShardId, table: &SsTable) -> Result<()> {
        let snapshot = generation(self.engine, &self.base.dir, shard, table).await?;
        let schema = &snapshot.manifest.schema;
        let column = |name: &str| schema.field(name).ok_or_else(|| missing(name));
        let fields = [column(&self.key.name)?, column(TOMBSTONE)?];
        let ids = same_columns(schema, &self.base.manifest.schema);
        for (index, of) in snapshot.manifest.fragments.iter().enumerate().rev() {
            let rows = FragmentRows::open(self.engine, &snapshot, index).await?;
            let live = rows.live(0..of.physical_rows);
            let columns = rows.read(&fields, &live).await?;
            let mut hidden = RoaringBitmap::new();
            if let Some(vector) = deletion_vector(self.engine, &snapshot, of).await? {
                hidden |= &vector.rows;
            }
            let offsets: Vec<u64> = live.into_iter().flatten().collect();
            if let [keys, tombstones] = columns.as_slice() {
                self.add_rows(keys, tombstones, &offsets, &mut hidden)?;
            }
            let mut files = of.files.clone();
            for id in files.iter_mut().flat_map(|file| &mut file.fields) {
                *id = ids.iter().find(|(from, _)| from == id).map_or(FieldId::TOMBSTONE, |(_, to)| *to);
            }
            let part = Part { root: Some(snapshot.root()), ..Part::default() };
            self.newest_first.push((fragment(files, of.physical_rows), with_deleted(part, hidden)));
        }
        Ok(())
    }

    /// Hides rows that delete their key, and those of which there is a newer one: of these rows the last is the newest.
    fn add_rows(
        &mut self,
        keys: &ArrayRef,
        tombstones: &ArrayRef,
        offsets: &[u64],
        hidden: &mut RoaringBitmap,
    ) -> Result<()> {
        let of = self.keys(keys)?;
        let tombstones = tombstones.as_boolean_opt().ok_or_else(|| missing(TOMBSTONE))?;
        let mut key = Vec::new();
        for (row, offset) in offsets.iter().enumerate().rev() {
            if !of.read(row, &mut key) {
                return Err(Error::corrupt("rows of a write-ahead log without a key"));
            }
            let before = self.seen.len();
            self.seen.number(&key);
            if self.seen.len() == before || (tombstones.is_valid(row) && tombstones.value(row)) {
                hidden.insert(offset_of(*offset)?);
            }
        }
        Ok(())
    }

    fn keys(&self, column: &ArrayRef) -> Result<Keys> {
        let keys = (column.data_type() == &self.key.data_type).then(|| Keys::new(std::slice::from_ref(column)));
        keys.flatten().ok_or_else(|| missing(&self.key.name))
    }

    async fn finish(self) -> Result<Merged> {
        let is_whole = self.is_whole;
        if self.newest_first.is_empty() {
            return Ok(Merged { view: self.base.clone(), is_whole });
        }
        let mut manifest = self.base.manifest.as_ref().clone();
        let mut parts = Parts::new();
        for (index, of) in manifest.fragments.iter_mut().enumerate() {
            let mut hidden = self.hidden_in_base(index).await?;
            if hidden.is_empty() {
                parts.push(None);
                continue;
            }
            if let Some(vector) = deletion_vector(self.engine, self.base, of).await? {
                hidden |= &vector.rows;
            }
            of.deletion = counted(hidden.len());
            parts.push(Some(with_deleted(Part::default(), hidden)));
        }
        let first = manifest.max_fragment_id.map_or(0, |id| u64::from(id) + 1);
        for (id, (mut fragment, part)) in (first..).zip(self.newest_first.into_iter().rev()) {
            fragment.id = FragmentId(id);
            fragment.deletion = counted(part.deleted.as_ref().map_or(0, |vector| vector.len()));
            if lineage::is_kept(&manifest) {
                lineage::complete(&mut fragment, &mut manifest.next_row_id, manifest.version.0)?;
            }
            parts.push(Some(part));
            manifest.fragments.push(fragment);
        }
        let snapshot =
            Snapshot { manifest: Rc::new(manifest), parts: Some(Rc::new(parts)), ..self.base.as_ref().clone() };
        Ok(Merged { view: Rc::new(snapshot), is_whole })
    }

    /// Rows of a fragment of the version that have a newer one.
    async fn hidden_in_base(&self, index: usize) -> Result<RoaringBitmap> {
        let mut hidden = RoaringBitmap::new();
        let rows = FragmentRows::open(self.engine, self.base, index).await?;
        let mut left = rows.live(0..rows.physical_rows());
        let mut key = Vec::new();
        while row_count(&left) > 0 {
            let (now, later) = split_rows(&left, MAX_READ_ROWS);
            let columns = rows.read(&[self.key], &now).await?;
            for column in &columns {
                let of = self.keys(column)?;
                for (row, offset) in now.iter().cloned().flatten().enumerate() {
                    if of.read(row, &mut key) && self.seen.find(&key).is_some() {
                        hidden.insert(offset_of(offset)?);
                    }
                }
            }
            left = later;
        }
        Ok(hidden)
    }
}

fn offset_of(row: u64) -> Result<u32> {
    u32::try_from(row).map_err(|_| Error::corrupt("more than 2^32 rows beside a version"))
}

fn fragment(files: Vec<DataFile>, physical_rows: u64) -> Fragment {
    Fragment {
        id: FragmentId(0),
        files,
        deletion: None,
        physical_rows,
        row_ids: None,
        last_updated_at_versions: None,
        created_at_versions: None,
    }
}

fn with_deleted(part: Part, rows: RoaringBitmap) -> Part {
    Part { deleted: (!rows.is_empty()).then(|| Rc::new(DeletionVector { rows })), ..part }
}

/// What a manifest says of so many deleted rows; the rows themselves are in the part.
fn counted(deleted_rows: u64) -> Option<DeletionFile> {
    let kind = DeletionFileKind::Bitmap;
    (deleted_rows > 0).then_some(DeletionFile { kind, read_version: 0, id: 0, deleted_rows, base_id: None })
}

/// For each field of a schema that of another one at the same place.
fn same_columns(from: &Schema, to: &Schema) -> Vec<(FieldId, FieldId)> {
    fn pair(from: &[Field], to: &[Field], pairs: &mut Vec<(FieldId, FieldId)>) {
        for field in from {
            if let Some(other) = to.iter().find(|other| other.name == field.name) {
                pairs.push((field.id, other.id));
                pair(&field.children, &other.children, pairs);
            }
        }
    }
    let mut pairs = Vec::new();
    pair(&from.fields, &to.fields, &mut pairs);
    pairs
}
