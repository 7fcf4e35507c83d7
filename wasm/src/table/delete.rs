//! Delete: which rows match, and the deletion files that say so.
//!
//! 1. The predicate's columns are read from the snapshot; matching rows are collected per fragment.
//! 2. On the latest version, each fragment gets a new deletion file with the old and the new rows; one without live rows goes.
//! 3. When others changed the same rows or rewrote the fragment since, the delete is executed again on the latest version.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use roaring::RoaringBitmap;

use crate::env::{format_uuid, now_ms, random_uuid};
use crate::error::{Error, Result};
use crate::format::table::fragment::DeletionFileKind;
use crate::format::table::{DeletionFile, DeletionVector, Fragment, FragmentId, Operation, Transaction};
use crate::table::commit::{self, Built, Change, Outcome};
use crate::table::database::Engine;
use crate::table::fragment_rows::deletion_vector;
use crate::table::matches::{BoundFilter, Matches};
use crate::table::paths;
use crate::table::snapshot::Snapshot;

/// Executions at most, and for how long.
const MAX_EXECUTIONS: u32 = 10;
const MAX_MS: u64 = 30_000;

/// Deletes matching rows of the snapshot, on top of whatever was committed since; the rows deleted and the version that did it.
///
/// # Errors
/// What the filter says; what [`commit::commit`] says; `Contention` when others changed the same rows again and again.
pub(crate) async fn delete(
    engine: &Rc<Engine>,
    snapshot: Rc<Snapshot>,
    predicate: &str,
) -> Result<(u64, Rc<Snapshot>)> {
    // A predicate that does not parse takes no lease.
    BoundFilter::new(predicate, &snapshot.manifest.schema.as_read())?;
    let mut begun = commit::begin(engine, snapshot).await?;
    let started_ms = now_ms(engine.env.as_ref());
    let mut executions = 0;
    let outcome = loop {
        executions += 1;
        let rows = match matching_rows(engine, &begun.base, predicate).await {
            Ok(rows) => rows,
            Err(error) => break Err(error),
        };
        let deleted = rows.values().map(RoaringBitmap::len).sum();
        let uuid = format_uuid(&random_uuid(engine.env.as_ref()));
        let change = Change::Delete { predicate: predicate.to_owned(), rows };
        match commit::commit(engine, &mut begun, &uuid, &change).await {
            Ok(Outcome::Committed(committed)) => break Ok((deleted, committed)),
            Ok(Outcome::Retry { theirs, latest }) => {
                let is_late = now_ms(engine.env.as_ref()).saturating_sub(started_ms) > MAX_MS;
                if executions >= MAX_EXECUTIONS || is_late {
                    let message = format!("the delete was executed {executions} times; the last one met {theirs}");
                    break Err(Error::Contention { message });
                }
                if let Err(error) = commit::rebase(engine, &mut begun, latest).await {
                    break Err(error);
                }
            }
            Err(error) => break Err(error),
        }
    };
    begun.release().await;
    outcome
}

async fn matching_rows(
    engine: &Rc<Engine>,
    snapshot: &Rc<Snapshot>,
    predicate: &str,
) -> Result<BTreeMap<FragmentId, RoaringBitmap>> {
    let filter = BoundFilter::new(predicate, &snapshot.manifest.schema.as_read())?;
    let mut matches = Matches::new(engine.clone(), snapshot.clone(), Some(filter));
    let mut rows: BTreeMap<FragmentId, RoaringBitmap> = BTreeMap::new();
    while let Some(window) = matches.next(u64::MAX).await? {
        let bitmap = rows.entry(window.fragment.fragment().id).or_default();
        for range in window.rows {
            let offset = |row: u64| u32::try_from(row).map_err(|_| Error::internal("a row behind 2^32"));
            bitmap.insert_range(offset(range.start)?..=offset(range.end.saturating_sub(1))?);
        }
    }
    Ok(rows)
}

/// Builds the delete on the latest version; `None` when it has to be executed again.
pub(crate) async fn build(
    engine: &Engine,
    base: &Snapshot,
    latest: &Snapshot,
    uuid: &str,
    predicate: &str,
    rows: &BTreeMap<FragmentId, RoaringBitmap>,
) -> Result<Option<Built>> {
    let find = |snapshot: &Snapshot, id: FragmentId| -> Option<Fragment> {
        let fragments = &snapshot.manifest.fragments;
        fragments.binary_search_by_key(&id, |fragment| fragment.id).ok().and_then(|at| fragments.get(at)).cloned()
    };
    let (mut updated, mut deleted, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_rebased = false;
    for (id, ours) in rows {
        let (Some(before), Some(now)) = (find(base, *id), find(latest, *id)) else { return Ok(None) };
        if before.files != now.files || before.physical_rows != now.physical_rows {
            return Ok(None);
        }
        is_rebased |= before.deletion != now.deletion;
        let mut all =
            deletion_vector(engine, latest, &now).await?.map_or_else(RoaringBitmap::new, |vector| vector.rows.clone());
        if before.deletion != now.deletion && !all.is_disjoint(ours) {
            // A row counts as deleted once: who comes second counts again.
            return Ok(None);
        }
        all |= ours;
        if all.len() >= now.physical_rows {
            deleted.push(*id);
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
        objects.push((paths::deletion_file(*id, &file), Bytes::from(bytes)));
        updated.push(Fragment { deletion: Some(file), ..now });
    }
    let read_version = if is_rebased { latest.version() } else { base.version() };
    let operation = Operation::Delete { updated, deleted, predicate: predicate.to_owned() };
    Ok(Some(Built { transaction: Transaction { read_version, uuid: uuid.to_owned(), operation }, objects }))
}
