//! Lineage: which id a row has, which version created it, and which changed it last. Pure. Only in tables with stable row ids.
//!
//! | operation | row id | created at | last updated at |
//! |---|---|---|---|
//! | append, overwrite, insert by a merge | next one | the new version | the new version |
//! | update, update by a merge | stays | stays | the new version |
//! | compaction, delete | stays | stays | stays |
//! | a column of the fragment was written | stays | stays | the new version |
//!
//! The id and the version of a row are known only when the manifest is built. An operation that writes rows again lets its new fragments
//! carry what the rows keep ([`Carried`]); [`complete`], called by `build_manifest`, adds the rest.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::table::feature::STABLE_ROW_IDS;
use crate::format::table::{Fragment, FragmentId, Manifest, RowIds, RowIdsBuilder, RowVersions};

/// Whether the rows of a table have ids that stay.
pub(crate) fn is_kept(manifest: &Manifest) -> bool {
    manifest.reader_flags & STABLE_ROW_IDS != 0
}

/// The ids of a fragment's rows.
///
/// # Errors
/// `Corrupt` when they are missing or do not fit.
pub(crate) fn row_ids(fragment: &Fragment) -> Result<RowIds> {
    let missing =
        || Error::corrupt(format!("fragment {} has no row ids, and the table has stable ones", fragment.id.0));
    let ids = RowIds::decode(fragment.row_ids.as_deref().ok_or_else(missing)?)?;
    check_count("row ids", ids.len(), fragment)?;
    Ok(ids)
}

/// Which version created each row of a fragment; version 1 where nothing says so.
///
/// # Errors
/// `Corrupt` when they do not fit.
pub(crate) fn created_at(fragment: &Fragment) -> Result<RowVersions> {
    versions(fragment.created_at_versions.as_deref(), fragment)
}

/// Which version changed each row of a fragment last; version 1 where nothing says so.
///
/// # Errors
/// `Corrupt` when they do not fit.
pub(crate) fn last_updated_at(fragment: &Fragment) -> Result<RowVersions> {
    versions(fragment.last_updated_at_versions.as_deref(), fragment)
}

fn versions(bytes: Option<&[u8]>, fragment: &Fragment) -> Result<RowVersions> {
    let versions = match bytes {
        Some(bytes) => RowVersions::decode(bytes)?,
        None => of_one_version(fragment.physical_rows, 1),
    };
    check_count("row versions", versions.len(), fragment)?;
    Ok(versions)
}

fn of_one_version(rows: u64, version: u64) -> RowVersions {
    let mut versions = RowVersions::default();
    versions.push(rows, version);
    versions
}

fn check_count(what: &str, count: u64, fragment: &Fragment) -> Result<()> {
    if count == fragment.physical_rows {
        return Ok(());
    }
    Err(Error::corrupt(format!("fragment {} has {} rows and {count} {what}", fragment.id.0, fragment.physical_rows)))
}

/// What rows keep that are written again.
///
/// 1. `Carried::new(&base.manifest)`, for every execution anew.
/// 2. `push` the rows in the order in which they are handed to the `RowWriter`; rows that are new come behind all of them and are not
///    pushed.
/// 3. After `RowWriter::finish`: `give_changed(&mut written.fragments)` for the new fragments of an `Update`, or
///    `give_moved(&mut group.new)` for those of a `Rewrite`.
///
/// In a table without stable row ids all of it does nothing.
pub(crate) struct Carried {
    is_kept: bool,
    ids: RowIdsBuilder,
    created_at: RowVersions,
    last_updated_at: RowVersions,
    open: Option<(FragmentId, Sequences)>,
}

struct Sequences {
    ids: RowIds,
    created_at: RowVersions,
    last_updated_at: RowVersions,
}

impl Carried {
    pub(crate) fn new(manifest: &Manifest) -> Carried {
        Carried {
            is_kept: is_kept(manifest),
            ids: RowIdsBuilder::default(),
            created_at: RowVersions::default(),
            last_updated_at: RowVersions::default(),
            open: None,
        }
    }

    /// The next rows: physical offsets in a fragment of the version read.
    ///
    /// # Errors
    /// `Corrupt` when the fragment's sequences do not fit it.
    pub(crate) fn push(&mut self, fragment: &Fragment, rows: &[Range<u64>]) -> Result<()> {
        if !self.is_kept {
            return Ok(());
        }
        let open = match self.open.take() {
            Some((id, sequences)) if id == fragment.id => sequences,
            _ => Sequences {
                ids: row_ids(fragment)?,
                created_at: created_at(fragment)?,
                last_updated_at: last_updated_at(fragment)?,
            },
        };
        for range in rows {
            open.ids.runs(range.clone(), &mut |run| self.ids.push(run));
            open.created_at.runs(range.clone(), &mut |rows, version| self.created_at.push(rows, version));
            open.last_updated_at.runs(range.clone(), &mut |rows, version| self.last_updated_at.push(rows, version));
        }
        self.open = Some((fragment.id, open));
        Ok(())
    }

    /// Gives rows with other values what they keep: ids and where they came from.
    pub(crate) fn give_changed(mut self, fragments: &mut [Fragment]) {
        for fragment in fragments.iter_mut().filter(|_| self.is_kept) {
            fragment.row_ids = Some(self.ids.take_front(fragment.physical_rows).encode());
            fragment.created_at_versions = Some(self.created_at.take_front(fragment.physical_rows).encode());
        }
    }

    /// Gives rows that only moved all that they had.
    pub(crate) fn give_moved(mut self, fragments: &mut [Fragment]) {
        for fragment in fragments.iter_mut().filter(|_| self.is_kept) {
            fragment.row_ids = Some(self.ids.take_front(fragment.physical_rows).encode());
            fragment.created_at_versions = Some(self.created_at.take_front(fragment.physical_rows).encode());
            fragment.last_updated_at_versions = Some(self.last_updated_at.take_front(fragment.physical_rows).encode());
        }
    }
}

/// Gives the rows of a new fragment the ids and versions that they do not carry.
///
/// # Errors
/// `Internal` when it carries more than it has rows; `NotSupported` when the ids are used up.
pub(crate) fn complete(fragment: &mut Fragment, next_row_id: &mut u64, version: u64) -> Result<()> {
    let rows = fragment.physical_rows;
    let too_many = || Error::internal("a new fragment carries more row ids or versions than it has rows");
    let mut ids = fragment.row_ids.take().unwrap_or_default();
    let fresh = rows.checked_sub(RowIds::decode(&ids)?.len()).ok_or_else(too_many)?;
    let end = next_row_id.checked_add(fresh).ok_or_else(|| Error::not_supported("more than 2^64 row ids"))?;
    if fresh > 0 {
        let mut last = RowIdsBuilder::default();
        last.push(*next_row_id..end);
        // A message's repeated segments are those of its bytes one after the other.
        ids.extend(last.encode());
    }
    *next_row_id = end;
    fragment.row_ids = Some(ids);
    for versions in [&mut fragment.created_at_versions, &mut fragment.last_updated_at_versions] {
        let mut all = versions.as_deref().map(RowVersions::decode).transpose()?.unwrap_or_default();
        all.push(rows.checked_sub(all.len()).ok_or_else(too_many)?, version);
        *versions = Some(all.encode());
    }
    Ok(())
}

/// The rows of a fragment have other values in some column since a version.
pub(crate) fn touch(fragment: &mut Fragment, version: u64) {
    fragment.last_updated_at_versions = Some(of_one_version(fragment.physical_rows, version).encode());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(id: u64, physical_rows: u64) -> Fragment {
        Fragment {
            id: FragmentId(id),
            files: Vec::new(),
            deletion: None,
            physical_rows,
            row_ids: None,
            last_updated_at_versions: None,
            created_at_versions: None,
        }
    }

    /// Ids, created at, last updated at.
    type Rows = (Vec<u64>, Vec<u64>, Vec<u64>);

    fn rows(fragment: &Fragment) -> Rows {
        let mut found = Rows::default();
        let all = 0..fragment.physical_rows;
        row_ids(fragment).unwrap().runs(all.clone(), &mut |run| found.0.extend(run));
        let expand = |versions: RowVersions| {
            let mut list = Vec::new();
            versions.runs(all.clone(), &mut |rows, version| list.extend(vec![version; rows as usize]));
            list
        };
        found.1 = expand(created_at(fragment).unwrap());
        found.2 = expand(last_updated_at(fragment).unwrap());
        found
    }

    fn completed(mut fragment: Fragment, mut next: u64, version: u64) -> (Fragment, u64) {
        complete(&mut fragment, &mut next, version).unwrap();
        (fragment, next)
    }

    fn carried() -> Carried {
        Carried {
            is_kept: true,
            ids: RowIdsBuilder::default(),
            created_at: RowVersions::default(),
            last_updated_at: RowVersions::default(),
            open: None,
        }
    }

    #[test]
    fn new_rows_take_the_next_ids_and_the_new_version() {
        let (fragment, next) = completed(fragment(1, 3), 10, 4);
        assert_eq!(rows(&fragment), (vec![10, 11, 12], vec![4; 3], vec![4; 3]));
        assert_eq!(next, 13);
    }

    #[test]
    fn changed_rows_keep_id_and_origin_and_inserted_ones_follow() {
        let (first, next) = completed(fragment(0, 4), 0, 1);
        let (second, next) = completed(fragment(1, 4), next, 2);
        let mut kept = carried();
        kept.push(&first, &[1..2, 3..4]).unwrap();
        kept.push(&second, &[0..1]).unwrap();
        let mut new = [fragment(0, 2), fragment(0, 3)];
        kept.give_changed(&mut new);
        let [head, tail] = new;
        let (head, next) = completed(head, next, 7);
        let (tail, next) = completed(tail, next, 7);
        assert_eq!(rows(&head), (vec![1, 3], vec![1, 1], vec![7, 7]));
        assert_eq!(rows(&tail), (vec![4, 8, 9], vec![2, 7, 7], vec![7, 7, 7]));
        assert_eq!(next, 10);
    }

    #[test]
    fn moved_rows_keep_everything() {
        let (mut first, next) = completed(fragment(0, 3), 0, 1);
        touch(&mut first, 5);
        let (second, next) = completed(fragment(1, 2), next, 2);
        let mut kept = carried();
        kept.push(&first, &[0..1, 2..3]).unwrap();
        kept.push(&second, &[0..2]).unwrap();
        let mut new = [fragment(9, 4)];
        kept.give_moved(&mut new);
        assert_eq!(rows(&new[0]), (vec![0, 2, 3, 4], vec![1, 1, 2, 2], vec![5, 5, 2, 2]));
        let (after, same) = completed(new[0].clone(), next, 8);
        assert_eq!((rows(&after), same), (rows(&new[0]), next));
    }

    #[test]
    fn missing_versions_are_version_one_and_missing_ids_are_corrupt() {
        let (mut fragment, _) = completed(fragment(3, 2), 0, 9);
        (fragment.created_at_versions, fragment.last_updated_at_versions) = (None, None);
        assert_eq!(rows(&fragment), (vec![0, 1], vec![1, 1], vec![1, 1]));
        fragment.physical_rows = 3;
        assert!(row_ids(&fragment).unwrap_err().to_string().contains("fragment 3 has 3 rows and 2 row ids"));
        fragment.row_ids = None;
        assert!(row_ids(&fragment).unwrap_err().to_string().contains("fragment 3 has no row ids"));
    }

    #[test]
    fn more_ids_than_rows_are_no_fragment() {
        let (mut full, mut next) = completed(fragment(0, 3), 0, 1);
        full.physical_rows = 2;
        assert!(complete(&mut full, &mut next, 2).is_err());
    }
}
