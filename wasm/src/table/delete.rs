//! Delete: which rows match, and the deletion files that say so.
//!
//! 1. The predicate's columns are read from the snapshot; matching rows are collected per fragment.
//! 2. On the latest version, each fragment gets a new deletion file with the old and the new rows; one without live rows goes.
//! 3. When others changed the same rows or rewrote the fragment since, the delete is executed again on the latest version.

use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use roaring::RoaringBitmap;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::table::fragment::DeletionFileKind;
use crate::format::table::{DeletionFile, DeletionVector, Fragment, FragmentId, Operation};
use crate::store::Path;
use crate::table::commit::{self, Change, Execution};
use crate::table::database::Engine;
use crate::table::fragment_rows::deletion_vector;
use crate::table::matches::{BoundFilter, Matches, Window};
use crate::table::paths;
use crate::table::snapshot::Snapshot;

/// Deletes matching rows of the snapshot, on top of whatever was committed since; the rows deleted and the version that did it.
///
/// # Errors
/// What the filter says; what [`Begun::run`](commit::Begun::run) says.
pub(crate) async fn delete(
    engine: &Rc<Engine>,
    snapshot: Rc<Snapshot>,
    predicate: &str,
) -> Result<(u64, Rc<Snapshot>)> {
    // A predicate that does not parse takes no lease.
    BoundFilter::new(predicate, &snapshot.manifest.schema.as_read())?;
    let mut delete = Delete { engine, predicate, deleted_rows: 0 };
    let done = commit::run(engine, snapshot, &mut delete).await?;
    Ok((delete.deleted_rows, done.snapshot))
}

struct Delete<'a> {
    engine: &'a Rc<Engine>,
    predicate: &'a str,
    deleted_rows: u64,
}

#[async_trait(?Send)]
impl Execution for Delete<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let rows = matching_rows(self.engine, base, self.predicate).await?;
        self.deleted_rows = rows.values().map(RoaringBitmap::len).sum();
        let predicate = self.predicate.to_owned();
        let operation = Operation::Delete { updated: Vec::new(), deleted: Vec::new(), predicate };
        Ok(Some(Change { rows, ..Change::of(operation) }))
    }
}

/// The live rows for which a predicate is true, by physical offset.
pub(crate) async fn matching_rows(
    engine: &Rc<Engine>,
    snapshot: &Rc<Snapshot>,
    predicate: &str,
) -> Result<SortedMap<FragmentId, RoaringBitmap>> {
    let filter = BoundFilter::new(predicate, &snapshot.manifest.schema.as_read())?;
    let mut matches = Matches::new(engine.clone(), snapshot.clone(), Some(filter));
    let mut rows: SortedMap<FragmentId, RoaringBitmap> = SortedMap::new();
    while let Some(window) = matches.next(u64::MAX).await? {
        collect(&mut rows, &window)?;
    }
    Ok(rows)
}

/// Adds the rows of a window to those that a change deletes.
pub(crate) fn collect(rows: &mut SortedMap<FragmentId, RoaringBitmap>, window: &Window) -> Result<()> {
    let bitmap = rows.or_default(window.fragment.fragment().id);
    for range in &window.rows {
        let offset = |row: u64| u32::try_from(row).map_err(|_| Error::internal("a row behind 2^32"));
        bitmap.insert_range(offset(range.start)?..=offset(range.end.saturating_sub(1))?);
    }
    Ok(())
}

/// What deleting rows makes of the fragments of a version.
pub(crate) struct Deleted {
    pub(crate) updated: Vec<Fragment>,
    /// Fragments without live rows.
    pub(crate) removed: Vec<FragmentId>,
    /// The deletion files.
    pub(crate) objects: Vec<(Path, Bytes)>,
    /// Others deleted rows of the same fragments since the version read.
    pub(crate) is_rebased: bool,
}

/// Deletes `rows`, which were live in `base`, in `latest`; `None` when others took or moved one of them since.
pub(crate) async fn build(
    engine: &Engine,
    base: &Snapshot,
    latest: &Snapshot,
    rows: &SortedMap<FragmentId, RoaringBitmap>,
) -> Result<Option<Deleted>> {
    let find = |snapshot: &Snapshot, id: FragmentId| -> Option<Fragment> {
        let fragments = &snapshot.manifest.fragments;
        fragments.binary_search_by_key(&id, |fragment| fragment.id).ok().and_then(|at| fragments.get(at)).cloned()
    };
    let mut built = Deleted { updated: Vec::new(), removed: Vec::new(), objects: Vec::new(), is_rebased: false };
    for (id, ours) in rows {
        let (Some(before), Some(now)) = (find(base, *id), find(latest, *id)) else { return Ok(None) };
        if before.files != now.files || before.physical_rows != now.physical_rows {
            return Ok(None);
        }
        built.is_rebased |= before.deletion != now.deletion;
        let mut all =
            deletion_vector(engine, latest, &now).await?.map_or_else(RoaringBitmap::new, |vector| vector.rows.clone());
        if before.deletion != now.deletion && !all.is_disjoint(ours) {
            // A row counts as deleted once: who comes second counts again.
            return Ok(None);
        }
        all |= ours;
        if all.len() >= now.physical_rows {
            built.removed.push(*id);
            continue;
        }
        let file = DeletionFile {
            kind: DeletionFileKind::Bitmap,
            read_version: latest.version(),
            id: engine.env.random_u64(),
            deleted_rows: all.len(),
            base_id: None,
        };
        let bytes = DeletionVector { rows: all }.encode_bitmap();
        built.objects.push((paths::deletion_file(*id, &file), Bytes::from(bytes)));
        built.updated.push(Fragment { deletion: Some(file), ..now });
    }
    Ok(Some(built))
}
