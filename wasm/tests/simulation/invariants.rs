//! What must hold after every step, and at the end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use lancelet::env::{Env, FixedEnv};
use lancelet::format::table::reference::{self, Tag};
use lancelet::format::table::{Manifest, RowIds, layout};
use lancelet::store::{DirId, ListOptions, Path};
use lancelet::table::{Consistency, Database, Table};
use lancelet::{Error, Result};

use crate::actors::{append_rows, read};
use crate::builders::block_on;
use crate::model::{Deed, Rows, Seen, State};
use crate::world::{Ended, SLEEP_MS, Tab, World};

/// Checks of every step, and what they remember of manifests.
#[derive(Default)]
pub struct Checked {
    /// What each manifest says.
    manifests: RefCell<BTreeMap<(DirId, Path), Rc<Said>>>,
    /// The rows that each row id ever named, and the ids that each row ever had: by table, as `id` and the version that made it.
    named: RefCell<BTreeMap<(DirId, u64), Born>>,
    names: RefCell<BTreeMap<(DirId, Born), u64>>,
}

type Born = (i64, u64);

/// What of a manifest is checked at every step.
struct Said {
    files: Vec<String>,
    next_row_id: u64,
}

impl Checked {
    /// Every listed version has its files; the newest version and all that leases keep are listed.
    pub fn check(&self, world: &World) {
        let Some(dir) = world.live_dir() else { return };
        let all = block_on(world.memory.list(&dir, &Path::default(), &ListOptions::default())).unwrap().objects;
        let there: BTreeSet<&str> = all.iter().map(|object| object.path.as_str()).collect();
        let (mut listed, mut next_row_ids) = (BTreeSet::new(), BTreeMap::new());
        for object in &all {
            let Some((version, _)) = layout::parse_manifest_name(object.path.file_name()) else { continue };
            listed.insert(version.0);
            let said = self.said(world, &dir, &object.path);
            next_row_ids.insert(version.0, said.next_row_id);
            for path in &said.files {
                assert!(there.contains(path.as_str()), "version {} lacks {path}", version.0);
            }
        }
        assert!(next_row_ids.values().is_sorted(), "the next row id went back: {next_row_ids:?}");
        if let Some(history) = world.lives.borrow().get(&dir) {
            assert_eq!(listed.last().copied(), Some(history.len() as u64), "the newest version is gone");
        }
        for object in all.iter().filter(|object| object.path.is_below(&Path::default().join(reference::tags_folder())))
        {
            let tag = Tag::decode(&block_on(world.memory.get(&dir, &object.path)).unwrap()).unwrap();
            assert!(listed.contains(&tag.version), "version {} went behind the tag {}", tag.version, object.path);
        }
        // A lease that nobody's clock takes for run out.
        for lease in block_on(world.memory.leases(&dir, world.latest_ms())).unwrap() {
            let version = lease.version;
            assert!(listed.contains(&version), "version {version} went under a {:?} lease", lease.kind);
        }
    }

    fn said(&self, world: &World, dir: &DirId, path: &Path) -> Rc<Said> {
        let key = (dir.clone(), path.clone());
        if let Some(known) = self.manifests.borrow().get(&key) {
            return known.clone();
        }
        let manifest = Manifest::decode(&block_on(world.memory.get(dir, path)).unwrap()).unwrap();
        let mut files = Vec::new();
        for fragment in &manifest.fragments {
            files.extend(fragment.files.iter().map(|file| layout::data_file_path(&file.path)));
            files.extend(fragment.deletion.iter().map(|file| layout::deletion_file_path(fragment.id, file)));
            if world.has_row_ids {
                let ids = RowIds::decode(fragment.row_ids.as_deref().expect("row ids")).unwrap();
                let is_given = |run: std::ops::Range<u64>| assert!(run.end <= manifest.next_row_id, "an id to come");
                ids.runs(0..ids.len(), &mut { is_given });
            }
        }
        let said = Rc::new(Said { files, next_row_id: manifest.next_row_id });
        self.manifests.borrow_mut().insert(key, said.clone());
        said
    }

    /// A row id names one row for ever, and a row has one for ever.
    fn names_stay(&self, dir: &DirId, state: &State, seen: &Seen) {
        let (mut named, mut names) = (self.named.borrow_mut(), self.names.borrow_mut());
        for ((id, row), seen) in state.rows.iter().zip(seen.rows.values()) {
            let born = (*id, row.created_at);
            let before = *named.entry((dir.clone(), seen.row_id)).or_insert(born);
            assert_eq!(before, born, "the row id {} names another row", seen.row_id);
            let before = *names.entry((dir.clone(), born)).or_insert(seen.row_id);
            assert_eq!(before, seen.row_id, "the row {born:?} has another id");
        }
    }
}

/// What a handle reads is its version.
///
/// # Errors
/// What reading meets.
pub async fn reads_its_version(world: &World, table: &Table) -> Result<(u64, Seen)> {
    let version = table.version().await?;
    let seen = read(table).await?;
    let dirs: Vec<DirId> = world.lives.borrow().keys().cloned().collect();
    let is_known = dirs.iter().any(|dir| is_version(world, dir, version, &seen));
    assert!(is_known, "version {version} reads as {seen:?}");
    Ok((version, seen))
}

/// Whether a version of a table is what was read.
fn is_version(world: &World, dir: &DirId, version: u64, seen: &Seen) -> bool {
    let at = usize::try_from(version).unwrap() - 1;
    let Some(state) = world.states(dir).get(at).cloned() else { return false };
    let is_seen = state.is_seen(seen, world.has_row_ids);
    if is_seen && world.has_row_ids {
        world.checked.names_stay(dir, &state, seen);
    }
    is_seen
}

/// A handle that keeps reading a version it holds; a tab that slept may have lost it to a cleanup.
///
/// # Errors
/// What reading meets.
pub async fn holds(world: &World, tab: &Tab, table: &Table, first: &(u64, Seen)) -> Result<()> {
    match reads_its_version(world, table).await {
        Ok(again) => assert_eq!(again, *first, "a held version changed under its reader"),
        Err(Error::NotFound { what }) => assert!(tab.was_hit.get(), "a held version went under its reader: {what}"),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What was acknowledged happened once, in the version that was told, and what failed did not.
pub fn deeds_are_as_told(world: &World) {
    let mut found: BTreeMap<usize, Vec<(u64, Rc<State>)>> = BTreeMap::new();
    for (dir, history) in world.lives.borrow().iter() {
        let states = world.states(dir);
        for (at, number) in history.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| states.get(at)).cloned().unwrap_or_default();
            found.entry(*number).or_default().push((at as u64 + 1, before));
            // Rows that were meant for other rows than those that are there now: never a success.
            let deeds = world.deeds.borrow();
            let is_on_rows = matches!(deeds[*number].deed, Deed::Append(..) | Deed::Upsert(_));
            let base = deeds[*number].base.filter(|_| is_on_rows).map_or(at, |base| usize::try_from(base).unwrap());
            let replaced = history.get(base..at).unwrap_or_default().iter();
            let is_replaced = replaced.map(|other| &deeds[*other].deed).any(Deed::is_replacing);
            assert!(!is_replaced, "deed {number} {:?} landed on replaced rows", deeds[*number]);
        }
    }
    for (number, record) in world.deeds.borrow().iter().enumerate() {
        let versions = found.remove(&number).unwrap_or_default();
        let is_repeatable = record.deed == Deed::Tidy;
        assert!(is_repeatable || versions.len() <= 1, "deed {number} {record:?} happened twice");
        match record.ended {
            Ended::No | Ended::Unknown => {}
            Ended::Failed => assert!(is_repeatable || versions.is_empty(), "deed {number} {record:?} happened"),
            Ended::Done { .. } if is_repeatable => {}
            Ended::Done { version, rows } => {
                // A table that lost the race for its name, or was dropped since, is in no history.
                let Some((happened, before)) = versions.first() else {
                    panic!("deed {number} {record:?} was lost");
                };
                assert_eq!(*happened, version, "deed {number} {record:?} is in another version");
                if let Some(rows) = rows {
                    assert_eq!(rows, record.deed.rows(before), "rows of deed {number} {record:?}");
                }
            }
        }
    }
}

/// A tab that opens afterwards finds a whole table: every version that is listed reads as its model, and rows can be added.
pub async fn table_is_whole(world: &World) {
    world.env.advance_ms(10 * SLEEP_MS);
    let env = Rc::new(FixedEnv::new(world.seed * 1_000 + 999, world.env.now_ns()));
    let database = Database::new(world.memory.clone(), env);
    database.maintain().await.unwrap();
    let names = database.table_names().await.unwrap();
    let Some(dir) = world.live_dir() else {
        assert!(world.is_dropping.get(), "the table is gone and nobody dropped it");
        return;
    };
    assert_eq!(names, ["t"]);
    let history = world.lives.borrow().get(&dir).cloned().expect("a table that nobody made");
    let states = world.states(&dir);
    let table = database.open_table("t", Consistency::Lazy).await.unwrap();
    let versions: Vec<u64> = table.versions().await.unwrap().iter().map(|info| info.version).collect();
    if !world.is_cleaned.get() {
        assert_eq!(versions, (1..=history.len() as u64).collect::<Vec<_>>(), "versions have gaps");
    }
    assert_eq!(versions.last().copied(), Some(history.len() as u64));
    for version in versions {
        table.checkout(version).await.unwrap();
        let seen = read(&table).await.unwrap();
        let is_whole = is_version(world, &dir, version, &seen);
        assert!(is_whole, "version {version}: {seen:?}, not {:?}", states.get(usize::try_from(version).unwrap() - 1));
        let count = table.count_rows(None).await.unwrap();
        assert_eq!(count, seen.rows.len() as u64, "count of version {version}");
    }
    table.checkout_latest().await.unwrap();
    append_rows(&table, &Rows::from([(900_000, 0)]), 1, false).await.unwrap();
    assert!(read(&table).await.unwrap().rows.contains_key(&900_000), "the table takes no rows any more");
}
