//! The model: what a version holds, as the deeds up to it say.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// `n` by `id`: what is written.
pub type Rows = BTreeMap<i64, i64>;

/// The name of the column that every table has beside `id`.
pub const N: &str = "n";

/// A column of a version, `id` aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// int64, else int32.
    pub is_wide: bool,
    pub is_nullable: bool,
    /// Its metadata of the key `note`.
    pub note: Option<String>,
    /// The version that added it: a name that comes back is another column.
    pub born: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// In the order of the columns.
    pub values: Vec<Option<i64>>,
    pub created_at: u64,
    /// More than one where it depends on how rows lie in fragments.
    pub updated_at: BTreeSet<u64>,
}

/// A version of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// `n` is the first.
    pub columns: Vec<Column>,
    pub rows: BTreeMap<i64, Row>,
}

/// A column and a row as a handle reads them.
pub type SeenColumn = (String, bool, bool, Option<String>);
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRow {
    pub values: Vec<Option<i64>>,
    pub row_id: u64,
    pub created_at: u64,
    pub updated_at: u64,
}

/// What a handle reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub columns: Vec<SeenColumn>,
    pub rows: BTreeMap<i64, SeenRow>,
}

/// What an actor sets out to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    Create(Rows),
    /// With a value for every other column of the version that is known, or only for those that take no nulls.
    Append(Rows, i64, bool),
    Delete(i64),
    /// `n = n + 1` of one row.
    Increment(i64),
    /// Rows that are there get these values, others are added.
    Upsert(Rows),
    /// Under the schema of the version that is known.
    Overwrite(Rows),
    Restore(u64),
    AddNull {
        name: String,
        is_wide: bool,
    },
    /// `n + 7`, which is never null, or `n` where it is not 3.
    AddComputed {
        name: String,
        is_nullable: bool,
    },
    Rename {
        from: String,
        to: String,
    },
    Cast {
        name: String,
        is_wide: bool,
    },
    LetNulls {
        name: String,
        is_nullable: bool,
    },
    Drop(String),
    Describe {
        name: String,
        note: String,
    },
    /// Leaves the rows as they are, in any number of versions.
    Tidy,
}

impl Deed {
    /// Whether it changes nothing but the schema.
    pub fn is_of_schema(&self) -> bool {
        match self {
            Deed::AddNull { .. }
            | Deed::AddComputed { .. }
            | Deed::Rename { .. }
            | Deed::Cast { .. }
            | Deed::LetNulls { .. }
            | Deed::Drop(_)
            | Deed::Describe { .. } => true,
            Deed::Create(_)
            | Deed::Append(..)
            | Deed::Delete(_)
            | Deed::Increment(_)
            | Deed::Upsert(_)
            | Deed::Overwrite(_)
            | Deed::Restore(_)
            | Deed::Tidy => false,
        }
    }

    /// Whether rows that lack a column may not fit any more after it.
    pub fn is_narrowing(&self) -> bool {
        matches!(self, Deed::AddComputed { is_nullable: false, .. } | Deed::LetNulls { is_nullable: false, .. })
    }

    /// Whether it puts other rows in the place of those that are there.
    pub fn is_replacing(&self) -> bool {
        matches!(self, Deed::Overwrite(_) | Deed::Restore(_))
    }

    /// The version after the deed, from all versions before; `base` is the one that its actor knew.
    pub fn apply(&self, before: &[Rc<State>], base: Option<u64>) -> State {
        let version = before.len() as u64 + 1;
        let of = |version: u64| before[usize::try_from(version).unwrap() - 1].as_ref();
        let known = || of(base.expect("a deed on a version that its actor knows"));
        let mut state = before.last().map(|last| last.as_ref().clone()).unwrap_or_default();
        match self {
            Deed::Create(rows) => {
                state.columns =
                    vec![Column { name: N.to_owned(), is_wide: true, is_nullable: false, note: None, born: version }];
                state.insert(rows, version, |_| None);
            }
            Deed::Append(rows, other, leaves_nulls) => {
                let known = known().columns.clone();
                state.insert(rows, version, |column| {
                    let known = known.iter().find(|known| known.born == column.born)?;
                    (!known.is_nullable || !leaves_nulls).then_some(*other)
                });
            }
            Deed::Upsert(rows) => {
                let (there, new): (Rows, Rows) = rows.iter().partition(|(id, _)| state.rows.contains_key(id));
                there.iter().for_each(|(id, n)| state.change(*id, version, |_| *n));
                state.insert(&new, version, |_| None);
            }
            Deed::Increment(id) => state.change(*id, version, |n| n + 1),
            Deed::Delete(id) => {
                state.rows.remove(id);
            }
            Deed::Overwrite(rows) => {
                state = State { columns: known().columns.clone(), rows: BTreeMap::new() };
                state.insert(rows, version, |_| None);
            }
            Deed::Restore(version) => state = of(*version).clone(),
            Deed::AddNull { name, is_wide } => state.add(name, *is_wide, true, version),
            Deed::AddComputed { name, is_nullable } => {
                state.add(name, true, *is_nullable, version);
                for row in state.rows.values_mut() {
                    let n = row.values[0].unwrap();
                    *row.values.last_mut().unwrap() = if *is_nullable { (n != 3).then_some(n) } else { Some(n + 7) };
                    row.updated_at = BTreeSet::from([version]);
                }
            }
            Deed::Rename { from, to } => {
                assert!(state.place(to).is_none(), "a column {to} is there already");
                state.column(from).name.clone_from(to);
            }
            Deed::Cast { name, is_wide } => {
                let column = state.column(name);
                if std::mem::replace(&mut column.is_wide, *is_wide) != *is_wide {
                    state.rows.values_mut().for_each(|row| {
                        // Fragments that have no values of another column are not written.
                        if name == N {
                            row.updated_at.clear();
                        }
                        row.updated_at.insert(version);
                    });
                }
            }
            Deed::LetNulls { name, is_nullable } => {
                state.column(name).is_nullable = *is_nullable;
                state.check_nulls();
            }
            Deed::Drop(name) => {
                let at = state.place(name).unwrap_or_else(|| panic!("no column {name} to drop"));
                state.columns.remove(at);
                state.rows.values_mut().for_each(|row| {
                    row.values.remove(at);
                });
            }
            Deed::Describe { name, note } => {
                // It is said of the column that had the name, whatever others called it since.
                let held = before.iter().skip(usize::try_from(base.unwrap()).unwrap() - 1).rev();
                let mut born = held.filter_map(|state| state.place(name).map(|at| state.columns[at].born));
                let born = born.find(|born| state.columns.iter().any(|column| column.born == *born));
                let column = state.columns.iter_mut().find(|column| Some(column.born) == born);
                column.unwrap_or_else(|| panic!("no column {name} to describe")).note = Some(note.clone());
            }
            Deed::Tidy => {}
        }
        state
    }

    /// How many rows it says it has changed.
    pub fn rows(&self, before: &State) -> u64 {
        match self {
            Deed::Create(rows) | Deed::Append(rows, ..) | Deed::Overwrite(rows) => rows.len() as u64,
            Deed::Delete(id) | Deed::Increment(id) => u64::from(before.rows.contains_key(id)),
            // Those that were there.
            Deed::Upsert(rows) => rows.keys().filter(|id| before.rows.contains_key(id)).count() as u64,
            _ => 0,
        }
    }
}

impl State {
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    fn column(&mut self, name: &str) -> &mut Column {
        let at = self.place(name).unwrap_or_else(|| panic!("no column {name}"));
        &mut self.columns[at]
    }

    fn add(&mut self, name: &str, is_wide: bool, is_nullable: bool, version: u64) {
        assert!(self.place(name).is_none(), "a column {name} is there already");
        self.columns.push(Column { name: name.to_owned(), is_wide, is_nullable, note: None, born: version });
        self.rows.values_mut().for_each(|row| row.values.push(None));
    }

    fn insert(&mut self, rows: &Rows, version: u64, other: impl Fn(&Column) -> Option<i64>) {
        for (id, n) in rows {
            let others = self.columns.iter().skip(1).map(&other);
            let values = std::iter::once(Some(*n)).chain(others).collect();
            let row = Row { values, created_at: version, updated_at: BTreeSet::from([version]) };
            assert!(self.rows.insert(*id, row).is_none(), "the row {id} is there already");
        }
        self.check_nulls();
    }

    fn change(&mut self, id: i64, version: u64, n: impl Fn(i64) -> i64) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.values[0] = row.values[0].map(n);
            row.updated_at = BTreeSet::from([version]);
        }
    }

    /// Whether some row has no value of a column.
    pub fn has_nulls(&self, at: usize) -> bool {
        self.rows.values().any(|row| row.values[at].is_none())
    }

    fn check_nulls(&self) {
        for (at, column) in self.columns.iter().enumerate().filter(|(_, column)| !column.is_nullable) {
            assert!(!self.has_nulls(at), "nulls in {}, which takes none", column.name);
        }
    }

    /// Whether this is what was read; without stable row ids nothing is known of a row's versions.
    pub fn is_seen(&self, seen: &Seen, has_row_ids: bool) -> bool {
        let column = |c: &Column| (c.name.clone(), c.is_wide, c.is_nullable, c.note.clone());
        self.columns.iter().map(column).eq(seen.columns.iter().cloned())
            && self.rows.len() == seen.rows.len()
            && self.rows.iter().zip(&seen.rows).all(|((id, row), (seen_id, seen))| {
                let is_dated = row.created_at == seen.created_at && row.updated_at.contains(&seen.updated_at);
                id == seen_id && row.values == seen.values && (is_dated || !has_row_ids)
            })
    }
}
