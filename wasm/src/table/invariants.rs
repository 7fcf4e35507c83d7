//! What must hold between a version and the next one, whatever the operation: checked before every publish.
//!
//! A breach is a defect of this crate; refusing the commit keeps the table whole.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::format::table::{Fragment, FragmentId, Manifest, Operation, Transaction};

/// # Errors
/// `Internal` naming the invariant.
pub(crate) fn check(previous: &Manifest, next: &Manifest, transaction: &Transaction) -> Result<()> {
    hold(previous.version.0.checked_add(1) == Some(next.version.0), "versions follow each other")?;
    hold(next.timestamp_ns > previous.timestamp_ns, "timestamps grow")?;
    hold(next.max_fragment_id >= previous.max_fragment_id, "the highest fragment id never falls")?;
    hold(next.next_row_id >= previous.next_row_id, "the next row id never falls")?;
    hold(next.schema == previous.schema, "the schema stays")?;
    hold(next.data_format == previous.data_format, "the data format stays")?;
    hold(next.config == previous.config, "the config stays")?;
    hold(next.table_metadata == previous.table_metadata, "the table metadata stay")?;
    hold(next.index_section == previous.index_section, "the index section stays")?;
    hold(next.base_paths == previous.base_paths && next.branch == previous.branch, "the place stays")?;
    check_fragments(next)?;

    let old: BTreeMap<FragmentId, &Fragment> =
        previous.fragments.iter().map(|fragment| (fragment.id, fragment)).collect();
    let new: BTreeMap<FragmentId, &Fragment> = next.fragments.iter().map(|fragment| (fragment.id, fragment)).collect();
    for (id, fragment) in &new {
        match old.get(id) {
            Some(before) => {
                hold(before.files == fragment.files, "a fragment keeps its files")?;
                hold(before.physical_rows == fragment.physical_rows, "a fragment keeps its rows")?;
                hold(fragment.live_rows() <= before.live_rows(), "deleted rows stay deleted")?;
            }
            None => {
                hold(matches!(transaction.operation, Operation::Append { .. }), "only an append adds fragments")?;
                let is_fresh = previous.max_fragment_id.is_none_or(|max| id.0 > u64::from(max));
                hold(is_fresh, "a fragment id is never given again")?;
            }
        }
    }
    let deleted: &[FragmentId] = match &transaction.operation {
        Operation::Delete { deleted, .. } => deleted,
        _ => &[],
    };
    for id in old.keys().filter(|id| !new.contains_key(id)) {
        hold(deleted.contains(id), "only a delete removes fragments")?;
    }
    Ok(())
}

/// What must hold within one version.
///
/// # Errors
/// `Internal` naming the invariant.
pub(crate) fn check_fragments(manifest: &Manifest) -> Result<()> {
    let is_ascending = manifest.fragments.windows(2).all(|pair| pair[0].id < pair[1].id);
    hold(is_ascending, "fragments ascend by id")?;
    for fragment in &manifest.fragments {
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
