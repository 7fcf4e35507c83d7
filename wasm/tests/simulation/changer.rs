//! Who changes the schema.

use arrow_schema::{DataType, Field, Schema};
use lancelet::Result;
use lancelet::store::fault::yield_once;
use lancelet::table::{Alteration, ComputedColumn, FieldMetadata, Table};

use crate::actors::Actor;
use crate::model::{Deed, N, State};

/// Columns beside `id` at most.
const MAX_COLUMNS: usize = 5;

fn int(is_wide: bool) -> DataType {
    if is_wide { DataType::Int64 } else { DataType::Int32 }
}

impl Actor {
    pub(crate) async fn change_schema(&self) {
        let Some(mut table) = self.open().await else { return };
        // Half of them have a column of their own that takes nulls and does not, in turn.
        let is_switching = self.world.below(2) == 0;
        for turn in 0..6 {
            for _ in 0..self.world.below(6) {
                yield_once().await;
            }
            // What it sets out to do is said by the version that it reads.
            let known = async {
                table.checkout_latest().await?;
                table.version().await
            };
            let version = match known.await {
                Ok(version) => version,
                Err(error) => {
                    self.tab.may_meet(&error);
                    let Some(next) = self.open().await else { return };
                    table = next;
                    continue;
                }
            };
            let switch = if is_switching { self.switch_of(version) } else { None };
            let Some(deed) = switch.or_else(|| self.change_of(version, turn)) else { continue };
            let work = async |table: &Table| Ok((change(table, &deed).await?, None));
            let Some(next) = self.attempt(table, deed.clone(), work).await else { return };
            table = next;
        }
    }

    /// Something that can be done to a version.
    fn change_of(&self, version: u64, turn: u64) -> Option<Deed> {
        let dir = self.world.live_dir()?;
        let states = self.world.states(&dir);
        let state = states.get(usize::try_from(version).unwrap().checked_sub(1)?)?;
        let below = |end: usize| usize::try_from(self.world.below(end as u64)).unwrap();
        let any = || state.columns[below(state.columns.len())].name.clone();
        let others = state.columns.len() - 1;
        let other = || state.columns[1 + below(others)].name.clone();
        let flag = || self.world.below(2) == 0;
        let choice = match self.world.below(9) {
            0..=1 if others + 1 >= MAX_COLUMNS => 6,
            2 | 4..=7 if others == 0 => 0,
            choice => choice,
        };
        Some(match choice {
            0 => Deed::AddNull { name: self.new_name(state, turn), is_wide: flag() },
            1 => Deed::AddComputed { name: self.new_name(state, turn), is_nullable: self.world.below(4) > 0 },
            2 => Deed::Rename { from: other(), to: format!("r{}_{turn}", self.number) },
            3 => Deed::Cast { name: N.to_owned(), is_wide: !state.columns[0].is_wide },
            4 => Deed::Cast { name: other(), is_wide: flag() },
            5 => Deed::LetNulls { name: other(), is_nullable: self.world.below(3) > 0 },
            6 | 7 => Deed::Drop(other()),
            _ => Deed::Describe { name: any(), note: format!("{} {turn}", self.number) },
        })
    }

    /// Whoever leaves nulls meanwhile meets the change, and so does whoever does not know the column.
    fn switch_of(&self, version: u64) -> Option<Deed> {
        let states = self.world.states(&self.world.live_dir()?);
        let state = states.get(usize::try_from(version).unwrap().checked_sub(1)?)?;
        let name = format!("s{}", self.number);
        let Some(at) = state.place(&name) else {
            return (state.columns.len() < MAX_COLUMNS).then_some(Deed::AddComputed { name, is_nullable: false });
        };
        let is_nullable = state.columns[at].is_nullable;
        (!is_nullable || !state.has_nulls(at)).then_some(Deed::LetNulls { name, is_nullable: !is_nullable })
    }

    /// A name of its own, or one that a column had which was dropped.
    fn new_name(&self, state: &State, turn: u64) -> String {
        let deeds = self.world.deeds.borrow();
        let mut dropped = deeds.iter().filter_map(|record| match &record.deed {
            // A version that is cleaned up meanwhile makes rows that are written those of a later one: by their names.
            Deed::Drop(name) if !self.world.has_cleaner.get() && state.place(name).is_none() => Some(name.clone()),
            _ => None,
        });
        let own = format!("c{}_{turn}", self.number);
        dropped.next_back().filter(|_| self.world.below(3) > 0).unwrap_or(own)
    }
}

async fn change(table: &Table, deed: &Deed) -> Result<u64> {
    let alteration = |name: &String| Alteration { path: name.clone(), rename: None, nullable: None, data_type: None };
    match deed {
        Deed::AddNull { name, is_wide } => {
            table.add_null_columns(&Schema::new(vec![Field::new(name, int(*is_wide), true)])).await
        }
        Deed::AddComputed { name, is_nullable } => {
            let value = if *is_nullable { "nullif(n, 3)" } else { "n + 7" };
            let value_sql = format!("CAST({value} AS BIGINT)");
            table.add_computed_columns(&[ComputedColumn { name: name.clone(), value_sql }]).await
        }
        Deed::Rename { from, to } => {
            table.alter_columns(&[Alteration { rename: Some(to.clone()), ..alteration(from) }]).await
        }
        Deed::Cast { name, is_wide } => {
            table.alter_columns(&[Alteration { data_type: Some(int(*is_wide)), ..alteration(name) }]).await
        }
        Deed::LetNulls { name, is_nullable } => {
            table.alter_columns(&[Alteration { nullable: Some(*is_nullable), ..alteration(name) }]).await
        }
        Deed::Drop(name) => table.drop_columns(std::slice::from_ref(name)).await,
        Deed::Describe { name, note } => {
            let entries = vec![("note".to_owned(), Some(note.clone()))];
            table.update_field_metadata(&[FieldMetadata { path: name.clone(), entries, replaces: false }]).await
        }
        other => panic!("{other:?} is no change of the schema"),
    }
}
