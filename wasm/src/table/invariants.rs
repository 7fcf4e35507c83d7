//! What must hold between a version and the next one, whatever the operation: checked before every publish.
//!
//! A breach is a defect of this crate; refusing the commit keeps the table whole.

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::table::{Fragment, FragmentId, Manifest, Operation, Transaction};
use crate::table::lineage;

/// What of a manifest an operation may change, beside its fragments.
#[derive(Default)]
struct Changes {
    schema: bool,
    data_format: bool,
    config: bool,
    table_metadata: bool,
    indices: bool,
}

fn changes(operation: &Operation) -> Changes {
    let none = Changes::default();
    match operation {
        Operation::Overwrite { .. } => Changes { schema: true, data_format: true, config: true, indices: true, ..none },
        Operation::Merge { .. } | Operation::Project { .. } => Changes { schema: true, indices: true, ..none },
        Operation::Restore { .. } => {
            Changes { schema: true, data_format: true, config: true, table_metadata: true, indices: true }
        }
        Operation::UpdateConfig { .. } => Changes { schema: true, config: true, table_metadata: true, ..none },
        Operation::CreateIndex { .. } | Operation::UpdateMemWalState => Changes { indices: true, ..none },
        Operation::Append { .. }
        | Operation::Delete { .. }
        | Operation::Update { .. }
        | Operation::Rewrite { .. }
        | Operation::ReserveFragments { .. }
        | Operation::DataReplacement { .. }
        | Operation::Clone
        | Operation::UpdateBases
        | Operation::Unknown => none,
    }
}

/// # Errors
/// `Internal` naming the invariant.
pub(crate) fn check(previous: &Manifest, next: &Manifest, transaction: &Transaction) -> Result<()> {
    hold(previous.version.0.checked_add(1) == Some(next.version.0), "versions follow each other")?;
    hold(next.timestamp_ns > previous.timestamp_ns, "timestamps grow")?;
    hold(next.max_fragment_id >= previous.max_fragment_id, "the highest fragment id never falls")?;
    hold(next.next_row_id >= previous.next_row_id, "the next row id never falls")?;
    let may = changes(&transaction.operation);
    hold(may.schema || next.schema == previous.schema, "the schema stays")?;
    hold(may.data_format || next.data_format == previous.data_format, "the data format stays")?;
    hold(may.config || next.config == previous.config, "the config stays")?;
    hold(may.table_metadata || next.table_metadata == previous.table_metadata, "the table metadata stay")?;
    hold(may.indices || next.index_section == previous.index_section, "the index section stays")?;
    hold(next.base_paths == previous.base_paths && next.branch == previous.branch, "the place stays")?;
    check_fragments(next)?;
    if matches!(transaction.operation, Operation::Restore { .. }) {
        // Its fragments are those of a version that was checked when it was made.
        return Ok(());
    }
    check_change(previous, next, &transaction.operation)
}

fn check_change(previous: &Manifest, next: &Manifest, operation: &Operation) -> Result<()> {
    let rewrites_columns =
        matches!(operation, Operation::Merge { .. } | Operation::Project { .. } | Operation::DataReplacement { .. });
    let old: SortedMap<FragmentId, &Fragment> =
        previous.fragments.iter().map(|fragment| (fragment.id, fragment)).collect();
    let new: SortedMap<FragmentId, &Fragment> = next.fragments.iter().map(|fragment| (fragment.id, fragment)).collect();
    let is_reserved = matches!(operation, Operation::Rewrite { .. });
    let adds = matches!(operation, Operation::Append { .. } | Operation::Update { .. } | Operation::Overwrite { .. });
    for (id, fragment) in &new {
        match old.get(id) {
            Some(before) => {
                hold(rewrites_columns || before.files == fragment.files, "a fragment keeps its files")?;
                hold(before.physical_rows == fragment.physical_rows, "a fragment keeps its rows")?;
                hold(fragment.live_rows() <= before.live_rows(), "deleted rows stay deleted")?;
                hold(!rewrites_columns || before.deletion == fragment.deletion, "columns change no rows")?;
            }
            None => {
                hold(adds || is_reserved, "only what writes rows adds fragments")?;
                let is_fresh = previous.max_fragment_id.is_none_or(|max| id.0 > u64::from(max));
                hold(is_fresh != is_reserved, "a fragment id is never given again")?;
            }
        }
    }
    let removed: Vec<FragmentId> = match operation {
        Operation::Delete { deleted: removed, .. } | Operation::Update { removed, .. } => removed.clone(),
        Operation::Rewrite { groups } => {
            groups.iter().flat_map(|group| &group.old).map(|fragment| fragment.id).collect()
        }
        Operation::Overwrite { .. } => old.keys().copied().collect(),
        _ => Vec::new(),
    };
    for id in old.keys().filter(|id| !new.contains_key(id)) {
        hold(removed.contains(id), "only what takes rows away removes fragments")?;
    }
    hold(!is_reserved || previous.live_rows() == next.live_rows(), "a rewrite keeps every row")
}

/// What must hold within one version.
///
/// # Errors
/// `Internal` naming the invariant.
pub(crate) fn check_fragments(manifest: &Manifest) -> Result<()> {
    let is_ascending = manifest.fragments.windows(2).all(|pair| pair[0].id < pair[1].id);
    hold(is_ascending, "fragments ascend by id")?;
    for fragment in &manifest.fragments {
        hold(!lineage::is_kept(manifest) || fragment.row_ids.is_some(), "rows have ids where ids stay")?;
        hold(manifest.max_fragment_id.is_some_and(|max| fragment.id.0 <= u64::from(max)), "ids are counted")?;
        hold(fragment.physical_rows > 0, "a fragment has rows")?;
        if let Some(deletion) = &fragment.deletion {
            hold(deletion.deleted_rows > 0, "a deletion file deletes rows")?;
            hold(deletion.deleted_rows < fragment.physical_rows, "a fragment has live rows")?;
        }
    }
    Ok(())
}

fn hold(condition: bool, invariant: &str) -> Result<()> {
    if condition { Ok(()) } else { Err(Error::internal(format!("the next version breaks an invariant: {invariant}"))) }
}
