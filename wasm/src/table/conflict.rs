//! Conflict: whether a change may be committed over what others committed since it read the table.
//!
//! [`MATRIX`] is the matrix of the Lance format as data: a row per operation of ours, a column per operation of theirs. `docs/conflicts.md`
//! shows it, with what differs from LanceDB and why; a test holds the two equal. [`rerun`] says what becomes of a change that has to be
//! executed again.

use roaring::RoaringBitmap;

use crate::collections::SortedSet;
use crate::format::proto::IndexMetadata;
use crate::format::table::schema::PRIMARY_KEY_POSITION;
use crate::format::table::{FieldId, Fragment, FragmentId, Operation, Schema, UpdateMap};
use crate::format::wal::spec;

/// Fragments of a commit that is remembered at most.
const MAX_GIST_FRAGMENTS: usize = 16;

/// What a commit of theirs means for ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing of ours changes.
    Compatible,
    /// They touched a fragment of ours: ours is built again on theirs, which may still turn out to need a new execution.
    Rebase,
    /// Ours has to be executed again on the newer version.
    Retry,
    /// Ours has to be executed again on this very version: what it lost here may seem to be there in a later one.
    RetryHere,
    /// Neither: ours must not be committed.
    Incompatible,
}

/// The change being committed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours<'a> {
    pub(crate) operation: &'a Operation,
    /// Fragments whose rows it deletes or moves.
    pub(crate) fragments: &'a SortedSet<FragmentId>,
    /// It inserts rows because no row had their keys: rows that others added may have them.
    pub(crate) guards_keys: bool,
}

/// What becomes of a change that has to be executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rerun {
    /// `CONFLICT`: the caller's intent may depend on what it read.
    Never,
    /// It is executed again; others of this engine wait, so that it gets done.
    Holding,
    /// It is executed again, and others go on meanwhile: it is long and nobody waits for it.
    Yielding,
}

/// What a retryable conflict leads to. None of these reads anything for its caller: on the newer version it means the same.
pub(crate) fn rerun(ours: &Operation) -> Rerun {
    match ours {
        // What is replaced was somebody's: who replaces it must have seen it.
        Operation::Overwrite { .. } => Rerun::Never,
        Operation::CreateIndex { .. } | Operation::Rewrite { .. } => Rerun::Yielding,
        Operation::Append { .. }
        | Operation::Delete { .. }
        | Operation::Update { .. }
        | Operation::Merge { .. }
        | Operation::Project { .. }
        | Operation::Restore { .. }
        | Operation::ReserveFragments { .. }
        | Operation::UpdateConfig { .. }
        | Operation::DataReplacement { .. } => Rerun::Holding,
        Operation::UpdateMemWalState | Operation::Clone | Operation::UpdateBases | Operation::Unknown => Rerun::Never,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Proceed,
    /// Rebase when they touched a fragment of ours.
    Rebase,
    /// Retry when they touched a fragment of ours.
    RetryShared,
    Retry,
    Exclude,
    /// Retry when ours guards keys.
    RetryKeys,
    /// Retry when ours guards keys, else rebase when they touched a fragment of ours.
    RebaseKeys,
    /// Retry when their change lets a column have no nulls: ours may hold some. Also, here, when a field of rows of ours is gone: its
    /// id may be given again.
    RetryTheirNullability,
    /// Retry when ours lets a column have no nulls: theirs may have added some.
    RetryOurNullability,
    /// Exclude when both set the same key of the config, else retry.
    RetryExcludeKey,
    /// Exclude when both set the same key of the config.
    ExcludeKey,
    /// Exclude when ours changes metadata of the schema or of fields, or both set the same key of the config.
    ExcludeSchemaOrKey,
    /// Exclude when both change one key of the config, the schema's metadata, or those of one field.
    ExcludeSameMetadata,
    /// Retry when ours changes metadata of the schema or of fields.
    RetryOurMetadata,
    /// Retry when theirs changes metadata of the schema or of fields: ours carries a schema.
    RetryTheirMetadata,
    /// Retry when a field of ours is gone.
    RetryGoneField,
    /// Exclude when a field of ours is gone.
    ExcludeGoneField,
    /// Retry when both make an index of one name, or ours builds on one that they removed.
    RetrySameIndex,
    /// Retry when their rewritten fragments are in our index.
    RetryRewrittenIndexed,
    /// Retry when their new index holds fragments that ours rewrites.
    RetryIndexedRewritten,
    /// Retry when they replaced data of a field that ours indexes.
    RetryReplacedIndexed,
    /// Retry when their new index is on a field that ours replaces.
    RetryIndexedReplaced,
    /// Exclude when a fragment of ours is gone.
    ExcludeGoneFragment,
    /// Exclude when a fragment of ours is gone, retry when its rows moved or a field of ours was rewritten.
    ReplacedUpdated,
    /// Retry when both replace one field of one fragment.
    RetrySameReplacement,
}

/// Rows are ours, columns are theirs, both in the order of [`place`].
#[rustfmt::skip]
const MATRIX: [[Rule; 12]; 12] = {
    use Rule::*;
    [
        // Append
        [Proceed, Proceed, Proceed, Exclude, Proceed, Proceed,
         RetryTheirNullability, RetryTheirNullability, Exclude, Proceed, Proceed, Proceed],
        // Delete
        [Proceed, Rebase, Rebase, Exclude, Proceed, RetryShared,
         Retry, Proceed, Exclude, Proceed, Proceed, RetryShared],
        // Update
        [RetryKeys, Rebase, RebaseKeys, Exclude, Proceed, RetryShared,
         Retry, RetryTheirNullability, Exclude, Proceed, Proceed, RetryShared],
        // Overwrite
        [Proceed, Proceed, Proceed, RetryExcludeKey, Proceed, Proceed,
         Proceed, Proceed, Proceed, Proceed, ExcludeKey, Proceed],
        // CreateIndex
        [Proceed, Proceed, Proceed, Exclude, RetrySameIndex, RetryRewrittenIndexed,
         RetryGoneField, RetryGoneField, Exclude, Proceed, Proceed, RetryReplacedIndexed],
        // Rewrite
        [Proceed, RetryShared, RetryShared, Exclude, RetryIndexedRewritten, RetryShared,
         Retry, Proceed, Exclude, Proceed, Proceed, RetryShared],
        // Merge
        [Retry, Retry, Retry, Exclude, Proceed, Retry,
         Retry, Exclude, Exclude, Proceed, RetryTheirMetadata, Retry],
        // Project
        [RetryOurNullability, Proceed, RetryOurNullability, Exclude, Proceed, Proceed,
         Retry, Retry, Exclude, Proceed, RetryTheirMetadata, Proceed],
        // Restore
        [Proceed, Proceed, Proceed, Proceed, Proceed, Proceed,
         Proceed, Proceed, Proceed, Proceed, Proceed, Proceed],
        // ReserveFragments
        [Proceed, Proceed, Proceed, Exclude, Proceed, Proceed,
         Proceed, Proceed, Exclude, Proceed, Proceed, Proceed],
        // UpdateConfig
        [Proceed, Proceed, Proceed, ExcludeSchemaOrKey, Proceed, Proceed,
         RetryOurMetadata, RetryGoneField, RetryOurMetadata, Proceed, ExcludeSameMetadata, Proceed],
        // DataReplacement
        [Proceed, ExcludeGoneFragment, ReplacedUpdated, Exclude, RetryIndexedReplaced, RetryShared,
         Retry, ExcludeGoneField, Exclude, Proceed, Proceed, RetrySameReplacement],
    ]
};

/// Where an operation stands in the matrix; of one that nobody commits beside others in the ordinary way, what it means for every other.
fn place(operation: &Operation) -> Result<usize, Rule> {
    Ok(match operation {
        Operation::Append { .. } => 0,
        Operation::Delete { .. } => 1,
        Operation::Update { .. } => 2,
        Operation::Overwrite { .. } => 3,
        Operation::CreateIndex { .. } => 4,
        Operation::Rewrite { .. } => 5,
        Operation::Merge { .. } => 6,
        Operation::Project { .. } => 7,
        Operation::Restore { .. } => 8,
        Operation::ReserveFragments { .. } => 9,
        Operation::UpdateConfig { .. } => 10,
        Operation::DataReplacement { .. } => 11,
        Operation::UpdateBases => return Err(Rule::Proceed),
        // What it means for us can't be known; on top of it, with its flags checked, ours may be possible.
        Operation::Unknown => return Err(Rule::Retry),
        Operation::UpdateMemWalState | Operation::Clone => return Err(Rule::Exclude),
    })
}

fn rule(ours: &Operation, theirs: &Operation) -> Rule {
    match (place(ours), place(theirs)) {
        (Ok(row), Ok(column)) => MATRIX[row][column],
        (_, Err(rule)) => rule,
        // Ours is one that this build commits beside nobody.
        (Err(_), Ok(_)) => Rule::Exclude,
    }
}

/// Judges one commit of theirs, which left the table with the schema `after`.
pub(crate) fn check(ours: Ours<'_>, theirs: &Operation, after: &Schema) -> Verdict {
    use Verdict::{Compatible, Incompatible, Rebase, Retry, RetryHere};
    let when = |condition: bool, verdict: Verdict| if condition { verdict } else { Compatible };
    let (our_reach, their_reach) = (reach(ours.operation), reach(theirs));
    let is_shared = || their_reach.touched().any(|id| ours.fragments.contains(id));
    let is_removed = || their_reach.removed.iter().any(|id| ours.fragments.contains(id));
    let is_field_gone = || our_reach.fields.iter().any(|id| after.field_by_id(*id).is_none());
    let is_key_shared = || is_key_shared(&our_reach, &their_reach);
    match rule(ours.operation, theirs) {
        Rule::Proceed => Compatible,
        Rule::Rebase => when(is_shared(), Rebase),
        Rule::RetryShared => when(is_shared(), Retry),
        Rule::Retry => Retry,
        Rule::Exclude => Incompatible,
        Rule::RetryKeys => when(ours.guards_keys, Retry),
        Rule::RebaseKeys if ours.guards_keys => Retry,
        Rule::RebaseKeys => when(is_shared(), Rebase),
        Rule::RetryTheirNullability if is_written_gone(ours.operation, after) => RetryHere,
        Rule::RetryTheirNullability => when(their_reach.forbids_nulls, Retry),
        Rule::RetryOurNullability => when(our_reach.forbids_nulls, Retry),
        Rule::RetryExcludeKey if is_key_shared() => Incompatible,
        Rule::RetryExcludeKey => Retry,
        Rule::ExcludeKey => when(is_key_shared(), Incompatible),
        Rule::ExcludeSchemaOrKey => when(our_reach.describes || is_key_shared(), Incompatible),
        // Executed again, ours says that there is a key.
        Rule::ExcludeSameMetadata if sets_key(ours.operation) && sets_key(theirs) => Retry,
        Rule::ExcludeSameMetadata => when(is_key_shared() || is_metadata_shared(ours.operation, theirs), Incompatible),
        Rule::RetryOurMetadata => when(our_reach.describes, Retry),
        Rule::RetryTheirMetadata => when(their_reach.describes, Retry),
        // A write spec goes by columns that its entry has no place for.
        Rule::RetryGoneField => when(is_field_gone() || sets_spec(ours.operation), Retry),
        Rule::ExcludeGoneField => when(is_field_gone(), Incompatible),
        Rule::RetrySameIndex => when(is_index_shared(ours.operation, theirs), Retry),
        Rule::RetryRewrittenIndexed => {
            when(holds(ours.operation, &their_reach.touched().copied().collect::<Vec<_>>()), Retry)
        }
        Rule::RetryIndexedRewritten => when(holds(theirs, &ours.fragments.iter().copied().collect::<Vec<_>>()), Retry),
        Rule::RetryReplacedIndexed | Rule::RetryIndexedReplaced => {
            when(our_reach.fields.iter().any(|id| their_reach.fields.contains(id)), Retry)
        }
        Rule::ExcludeGoneFragment => when(is_removed(), Incompatible),
        Rule::ReplacedUpdated if is_removed() => Incompatible,
        Rule::ReplacedUpdated => when(is_shared(), Retry),
        Rule::RetrySameReplacement => when(is_replacement_shared(ours.operation, theirs), Retry),
    }
}

/// What [`check`] asks of a commit of theirs that left the schema as it was, where that is little: enough to judge by it without its
/// manifest.
pub(crate) fn gist(theirs: &Operation) -> Option<Operation> {
    let bare = |fragments: &[Fragment]| -> Vec<Fragment> {
        let bare = |fragment: &Fragment| Fragment {
            id: fragment.id,
            files: Vec::new(),
            deletion: None,
            physical_rows: fragment.physical_rows,
            row_ids: None,
            last_updated_at_versions: None,
            created_at_versions: None,
        };
        fragments.iter().map(bare).collect()
    };
    match theirs {
        Operation::Append { .. } => Some(Operation::Append { fragments: Vec::new() }),
        Operation::Delete { updated, deleted, .. } if updated.len() + deleted.len() <= MAX_GIST_FRAGMENTS => {
            Some(Operation::Delete { updated: bare(updated), deleted: deleted.clone(), predicate: String::new() })
        }
        Operation::Update { removed, updated, .. } if updated.len() + removed.len() <= MAX_GIST_FRAGMENTS => {
            Some(Operation::Update {
                removed: removed.clone(),
                updated: bare(updated),
                new: Vec::new(),
                fields_modified: Vec::new(),
                fields_preserving: Vec::new(),
                has_key_filter: false,
            })
        }
        // Much to remember, or of another schema than the one before it, or of a kind that is rare: it is read again.
        _ => None,
    }
}

/// What an operation reaches of the version before it.
#[derive(Default)]
struct Reach<'a> {
    /// Fragments that it removes, and those that it changes.
    removed: Vec<FragmentId>,
    changed: Vec<FragmentId>,
    /// It lets a column have no nulls.
    forbids_nulls: bool,
    /// It changes metadata of the schema or of fields, and nothing else of the schema.
    describes: bool,
    /// Keys of the config that it sets or removes; all of them where it replaces the config.
    config_keys: Vec<&'a str>,
    replaces_config: bool,
    /// Fields that it is about, where that is a part of the schema.
    fields: Vec<FieldId>,
}

impl Reach<'_> {
    /// Fragments that existed before the operation and that it changed or removed.
    fn touched(&self) -> impl Iterator<Item = &FragmentId> {
        self.removed.iter().chain(&self.changed)
    }
}

fn reach(operation: &Operation) -> Reach<'_> {
    let none = Reach::default();
    let ids = |fragments: &[Fragment]| fragments.iter().map(|fragment| fragment.id).collect();
    match operation {
        Operation::Delete { updated, deleted: removed, .. } | Operation::Update { updated, removed, .. } => {
            Reach { removed: removed.clone(), changed: ids(updated), ..none }
        }
        Operation::Rewrite { groups } => {
            let old = groups.iter().flat_map(|group| &group.old);
            Reach { removed: old.map(|fragment| fragment.id).collect(), ..none }
        }
        Operation::Merge { preserves_nullability, .. } | Operation::Project { preserves_nullability, .. } => {
            Reach { forbids_nulls: !preserves_nullability, ..none }
        }
        Operation::Overwrite { config, .. } => {
            Reach { config_keys: config.keys().map(String::as_str).collect(), ..none }
        }
        Operation::UpdateConfig { config, schema_metadata, field_metadata, table_metadata: _ } => Reach {
            describes: schema_metadata.is_some() || !field_metadata.is_empty(),
            config_keys: config.as_ref().and_then(map_keys).unwrap_or_default(),
            replaces_config: config.as_ref().is_some_and(|update| update.replaces),
            fields: field_metadata.keys().copied().collect(),
            ..none
        },
        Operation::CreateIndex { new, .. } => {
            Reach { fields: new.iter().flat_map(|index| &index.fields).map(|id| FieldId(*id)).collect(), ..none }
        }
        Operation::DataReplacement { replacements } => {
            let files = replacements.iter().flat_map(|replacement| &replacement.file);
            Reach {
                changed: replacements.iter().map(|replacement| replacement.fragment).collect(),
                fields: files.flat_map(|file| file.fields.clone()).collect(),
                ..none
            }
        }
        Operation::Append { .. }
        | Operation::Restore { .. }
        | Operation::ReserveFragments { .. }
        | Operation::UpdateMemWalState
        | Operation::Clone
        | Operation::UpdateBases
        | Operation::Unknown => none,
    }
}

/// Fragments that existed before the operation and that it changed or removed.
pub(crate) fn touched(operation: &Operation) -> Vec<FragmentId> {
    reach(operation).touched().copied().collect()
}

/// Whether a column of rows that ours appends was dropped or cast.
fn is_written_gone(ours: &Operation, after: &Schema) -> bool {
    let Operation::Append { fragments } = ours else { return false };
    let mut written = fragments.iter().flat_map(|fragment| &fragment.files).flat_map(|file| &file.fields);
    written.any(|id| *id != FieldId::TOMBSTONE && after.field_by_id(*id).is_none())
}

fn map_keys(update: &UpdateMap) -> Option<Vec<&str>> {
    (!update.replaces).then(|| update.entries.iter().map(|(key, _)| key.as_str()).collect())
}

fn is_key_shared(ours: &Reach<'_>, theirs: &Reach<'_>) -> bool {
    let changes = |reach: &Reach<'_>| reach.replaces_config || !reach.config_keys.is_empty();
    match ours.replaces_config || theirs.replaces_config {
        true => changes(ours) && changes(theirs),
        false => ours.config_keys.iter().any(|key| theirs.config_keys.contains(key)),
    }
}

fn is_metadata_shared(ours: &Operation, theirs: &Operation) -> bool {
    let (
        Operation::UpdateConfig {
            schema_metadata: our_schema,
            field_metadata: our_fields,
            table_metadata: ours_table,
            ..
        },
        Operation::UpdateConfig {
            schema_metadata: their_schema,
            field_metadata: their_fields,
            table_metadata: theirs_table,
            ..
        },
    ) = (ours, theirs)
    else {
        return false;
    };
    let is_table_shared = match (ours_table, theirs_table) {
        (Some(ours), Some(theirs)) => match (map_keys(ours), map_keys(theirs)) {
            (Some(ours), Some(theirs)) => ours.iter().any(|key| theirs.contains(key)),
            _ => true,
        },
        _ => false,
    };
    is_table_shared
        || (our_schema.is_some() && their_schema.is_some())
        || our_fields.keys().any(|id| their_fields.contains_key(id))
}

/// Whether a write spec is set by it.
fn sets_spec(operation: &Operation) -> bool {
    let Operation::CreateIndex { new, .. } = operation else { return false };
    new.iter().any(|index| index.name == spec::INDEX_NAME)
}

/// Whether the primary key is set by it.
fn sets_key(operation: &Operation) -> bool {
    let Operation::UpdateConfig { field_metadata, .. } = operation else { return false };
    field_metadata.values().flat_map(|update| &update.entries).any(|(key, _)| key == PRIMARY_KEY_POSITION)
}

fn is_index_shared(ours: &Operation, theirs: &Operation) -> bool {
    let (
        Operation::CreateIndex { new: our_new, removed: our_removed },
        Operation::CreateIndex { new: their_new, removed: their_removed },
    ) = (ours, theirs)
    else {
        return false;
    };
    let is_named = |index: &IndexMetadata| our_new.iter().any(|ours| ours.name == index.name);
    let is_source = |index: &IndexMetadata| our_removed.iter().any(|ours| ours.uuid == index.uuid);
    their_new.iter().any(is_named) || their_removed.iter().any(is_source)
}

/// Whether an index of the operation holds one of the fragments. What it holds can't be told from a bitmap that does not decode.
fn holds(operation: &Operation, fragments: &[FragmentId]) -> bool {
    let Operation::CreateIndex { new, .. } = operation else { return false };
    new.iter().any(|index| match RoaringBitmap::deserialize_from(index.fragment_bitmap.as_slice()) {
        Ok(bitmap) => fragments.iter().any(|id| u32::try_from(id.0).is_ok_and(|id| bitmap.contains(id))),
        Err(_) => !fragments.is_empty(),
    })
}

fn is_replacement_shared(ours: &Operation, theirs: &Operation) -> bool {
    let (Operation::DataReplacement { replacements: ours }, Operation::DataReplacement { replacements: theirs }) =
        (ours, theirs)
    else {
        return false;
    };
    ours.iter().any(|ours| {
        theirs.iter().any(|theirs| {
            let fields = |file: &Option<crate::format::table::DataFile>| {
                file.as_ref().map(|file| file.fields.clone()).unwrap_or_default()
            };
            let (our_fields, their_fields) = (fields(&ours.file), fields(&theirs.file));
            ours.fragment == theirs.fragment && our_fields.iter().any(|id| their_fields.contains(id))
        })
    })
}

#[cfg(test)]
mod tests;
