//! Conflict: whether a change may be committed over what others committed since it read the table.
//!
//! The match in `rules` is the matrix of the Lance format, one line per operation of theirs, for the operations that we write.

use std::collections::BTreeSet;

use crate::format::table::{FragmentId, Operation};

/// What a commit of theirs means for ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing of ours changes.
    Compatible,
    /// They touched a fragment of ours: ours is built again on theirs, which may still turn out to need a new execution.
    Rebase,
    /// Ours has to be executed again on the newer version.
    Retry,
    /// Neither: ours must not be committed.
    Incompatible,
}

/// The change being committed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ours<'a> {
    Append,
    /// Deletes rows of these fragments.
    Delete(&'a BTreeSet<FragmentId>),
}

impl Ours<'_> {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ours::Append => "Append",
            Ours::Delete(_) => "Delete",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Proceed,
    RebaseIfShared,
    RetryIfShared,
    /// New non-null columns would have no values in our rows.
    RetryUnlessNullabilityKept,
    Retry,
    Exclude,
}

/// Ours Append, ours Delete, by the operation of theirs.
fn rules(theirs: &Operation) -> (Rule, Rule) {
    use Rule::{Exclude, Proceed, RebaseIfShared, Retry, RetryIfShared, RetryUnlessNullabilityKept};
    match theirs {
        Operation::Append { .. } => (Proceed, Proceed),
        Operation::Delete { .. } => (Proceed, RebaseIfShared),
        Operation::Update { .. } => (Proceed, RebaseIfShared),
        Operation::Overwrite { .. } => (Exclude, Exclude),
        Operation::CreateIndex => (Proceed, Proceed),
        Operation::Rewrite { .. } => (Proceed, RetryIfShared),
        Operation::Merge { .. } => (RetryUnlessNullabilityKept, Retry),
        Operation::Project { .. } => (RetryUnlessNullabilityKept, Proceed),
        Operation::Restore { .. } => (Exclude, Exclude),
        Operation::ReserveFragments { .. } => (Proceed, Proceed),
        Operation::UpdateConfig => (Proceed, Proceed),
        Operation::DataReplacement { .. } => (Proceed, RetryIfShared),
        Operation::UpdateMemWalState => (Exclude, Exclude),
        Operation::Clone => (Exclude, Exclude),
        Operation::UpdateBases => (Proceed, Proceed),
        // What it means for us can't be known; on top of it, with its flags checked, ours may be possible.
        Operation::Unknown => (Retry, Retry),
    }
}

/// Judges one commit of theirs.
pub(crate) fn check(ours: Ours<'_>, theirs: &Operation) -> Verdict {
    let (append, delete) = rules(theirs);
    let (rule, fragments) = match ours {
        Ours::Append => (append, None),
        Ours::Delete(fragments) => (delete, Some(fragments)),
    };
    let is_shared = || fragments.is_some_and(|ours| touched(theirs).iter().any(|id| ours.contains(id)));
    match rule {
        Rule::Proceed => Verdict::Compatible,
        Rule::RebaseIfShared if is_shared() => Verdict::Rebase,
        Rule::RetryIfShared if is_shared() => Verdict::Retry,
        Rule::RebaseIfShared | Rule::RetryIfShared => Verdict::Compatible,
        Rule::RetryUnlessNullabilityKept => match theirs {
            Operation::Merge { preserves_nullability: true } | Operation::Project { preserves_nullability: true } => {
                Verdict::Compatible
            }
            _ => Verdict::Retry,
        },
        Rule::Retry => Verdict::Retry,
        Rule::Exclude => Verdict::Incompatible,
    }
}

/// Fragments that existed before the operation and that it changed or removed.
fn touched(operation: &Operation) -> Vec<FragmentId> {
    match operation {
        Operation::Delete { updated, deleted, .. } => {
            updated.iter().map(|fragment| fragment.id).chain(deleted.iter().copied()).collect()
        }
        Operation::Update { removed, updated, .. } => {
            updated.iter().map(|fragment| fragment.id).chain(removed.iter().copied()).collect()
        }
        Operation::Rewrite { old } => old.clone(),
        Operation::DataReplacement { fragments } => fragments.clone(),
        Operation::Append { .. }
        | Operation::Overwrite { .. }
        | Operation::CreateIndex
        | Operation::Merge { .. }
        | Operation::Restore { .. }
        | Operation::ReserveFragments { .. }
        | Operation::Project { .. }
        | Operation::UpdateConfig
        | Operation::UpdateMemWalState
        | Operation::Clone
        | Operation::UpdateBases
        | Operation::Unknown => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::table::{Fragment, Schema};
    use std::collections::BTreeMap;

    fn fragment(id: u64) -> Fragment {
        Fragment {
            id: FragmentId(id),
            files: Vec::new(),
            deletion: None,
            physical_rows: 10,
            row_ids: None,
            last_updated_at_versions: None,
            created_at_versions: None,
        }
    }

    /// Every operation of theirs; those that touch fragments touch `shared`.
    fn theirs(shared: u64) -> Vec<(&'static str, Operation)> {
        let overwrite = Operation::Overwrite { fragments: vec![], schema: Schema::default(), config: BTreeMap::new() };
        vec![
            ("append", Operation::Append { fragments: vec![fragment(0)] }),
            (
                "delete",
                Operation::Delete { updated: vec![fragment(shared)], deleted: vec![], predicate: String::new() },
            ),
            (
                "delete whole",
                Operation::Delete { updated: vec![], deleted: vec![FragmentId(shared)], predicate: String::new() },
            ),
            ("update", Operation::Update { removed: vec![], updated: vec![fragment(shared)], new: vec![fragment(0)] }),
            (
                "update whole",
                Operation::Update { removed: vec![FragmentId(shared)], updated: vec![], new: vec![fragment(0)] },
            ),
            ("overwrite", overwrite),
            ("create index", Operation::CreateIndex),
            ("rewrite", Operation::Rewrite { old: vec![FragmentId(shared)] }),
            ("merge", Operation::Merge { preserves_nullability: false }),
            ("merge nullable", Operation::Merge { preserves_nullability: true }),
            ("project", Operation::Project { preserves_nullability: false }),
            ("project nullable", Operation::Project { preserves_nullability: true }),
            ("restore", Operation::Restore { version: 1 }),
            ("reserve", Operation::ReserveFragments { count: 1 }),
            ("update config", Operation::UpdateConfig),
            ("data replacement", Operation::DataReplacement { fragments: vec![FragmentId(shared)] }),
            ("mem wal", Operation::UpdateMemWalState),
            ("clone", Operation::Clone),
            ("update bases", Operation::UpdateBases),
            ("unknown", Operation::Unknown),
        ]
    }

    fn row(ours: Ours<'_>, shared: u64) -> Vec<(&'static str, Verdict)> {
        theirs(shared).iter().map(|(name, theirs)| (*name, check(ours, theirs))).collect()
    }

    #[test]
    fn an_append_is_judged_by_its_row_of_the_matrix() {
        use Verdict::{Compatible as Ok, Incompatible as In, Retry as Rt};
        let expected = vec![
            ("append", Ok),
            ("delete", Ok),
            ("delete whole", Ok),
            ("update", Ok),
            ("update whole", Ok),
            ("overwrite", In),
            ("create index", Ok),
            ("rewrite", Ok),
            ("merge", Rt),
            ("merge nullable", Ok),
            ("project", Rt),
            ("project nullable", Ok),
            ("restore", In),
            ("reserve", Ok),
            ("update config", Ok),
            ("data replacement", Ok),
            ("mem wal", In),
            ("clone", In),
            ("update bases", Ok),
            ("unknown", Rt),
        ];
        assert_eq!(row(Ours::Append, 3), expected);
    }

    #[test]
    fn a_delete_of_a_shared_fragment_is_judged_by_its_row_of_the_matrix() {
        use Verdict::{Compatible as Ok, Incompatible as In, Rebase as Rb, Retry as Rt};
        let ours = BTreeSet::from([FragmentId(3), FragmentId(5)]);
        let expected = vec![
            ("append", Ok),
            ("delete", Rb),
            ("delete whole", Rb),
            ("update", Rb),
            ("update whole", Rb),
            ("overwrite", In),
            ("create index", Ok),
            ("rewrite", Rt),
            ("merge", Rt),
            ("merge nullable", Rt),
            ("project", Ok),
            ("project nullable", Ok),
            ("restore", In),
            ("reserve", Ok),
            ("update config", Ok),
            ("data replacement", Rt),
            ("mem wal", In),
            ("clone", In),
            ("update bases", Ok),
            ("unknown", Rt),
        ];
        assert_eq!(row(Ours::Delete(&ours), 3), expected);
    }

    #[test]
    fn a_delete_of_other_fragments_passes_what_only_touches_fragments() {
        let ours = BTreeSet::from([FragmentId(5)]);
        let passed: Vec<_> = row(Ours::Delete(&ours), 3)
            .into_iter()
            .filter(|(_, verdict)| *verdict == Verdict::Compatible)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            passed,
            [
                "append",
                "delete",
                "delete whole",
                "update",
                "update whole",
                "create index",
                "rewrite",
                "project",
                "project nullable",
                "reserve",
                "update config",
                "data replacement",
                "update bases"
            ]
        );
    }
}
