//! Repetition and definition levels: where lists begin, and what is null.
//!
//! A leaf's layers are listed innermost first. Definition codes are handed out in that order: 0 is a valid value, a larger code was
//! decided further out. A repetition level of 0 continues the innermost list; `r` begins a list at list layer `r` (1 = innermost) and at
//! every layer inside; the largest begins a row. An entry is *visible* when it owns a slot among the values.

use std::rc::Rc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};

use crate::error::{Error, Result};
use crate::format::proto::RepDefLayer;

/// Types nest; deeper than this no writer goes.
const MAX_LAYERS: usize = 64;

/// Levels at once that no bytes stand for.
const MAX_UNSTORED_LEVELS: usize = 1 << 27;

/// What a layer stands for in the type of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// The leaf, a struct, or a fixed-size list of structs.
    Item,
    List,
}

/// The layers of one page, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    layers: Vec<RepDefLayer>,
    /// The repetition level that begins a row; 0 without lists.
    pub max_rep: u16,
    /// The largest definition code.
    pub max_def: u16,
    /// The largest definition code of a visible entry.
    pub max_visible: u16,
    /// Of each definition code: list layers at or inside the layer it belongs to.
    lists_of_code: Vec<u16>,
}

fn kind(layer: RepDefLayer) -> LayerKind {
    match layer {
        RepDefLayer::Unspecified | RepDefLayer::AllValidItem | RepDefLayer::NullableItem => LayerKind::Item,
        RepDefLayer::AllValidList
        | RepDefLayer::NullableList
        | RepDefLayer::EmptyableList
        | RepDefLayer::NullAndEmptyList => LayerKind::List,
    }
}

fn code_count(layer: RepDefLayer) -> u16 {
    match layer {
        RepDefLayer::Unspecified | RepDefLayer::AllValidItem | RepDefLayer::AllValidList => 0,
        RepDefLayer::NullableItem | RepDefLayer::NullableList | RepDefLayer::EmptyableList => 1,
        RepDefLayer::NullAndEmptyList => 2,
    }
}

impl Layers {
    /// Decodes the layers of a page.
    ///
    /// # Errors
    /// `Corrupt` for an unknown layer, none, or too many.
    pub fn parse(layers: &[i32]) -> Result<Layers> {
        if layers.is_empty() || layers.len() > MAX_LAYERS {
            return Err(Error::corrupt(format!("{} layers", layers.len())));
        }
        let mut parsed = Layers { layers: Vec::new(), max_rep: 0, max_def: 0, max_visible: 0, lists_of_code: vec![0] };
        for &layer in layers {
            let layer = match RepDefLayer::try_from(layer) {
                Ok(RepDefLayer::Unspecified) | Err(_) => return Err(Error::corrupt(format!("layer {layer}"))),
                Ok(layer) => layer,
            };
            if kind(layer) == LayerKind::List {
                parsed.max_rep += 1;
            }
            let codes = code_count(layer);
            parsed.max_def += codes;
            parsed.lists_of_code.extend((0..codes).map(|_| parsed.max_rep));
            if parsed.max_rep == 0 {
                parsed.max_visible += codes;
            }
            parsed.layers.push(layer);
        }
        Ok(parsed)
    }

    /// # Errors
    /// `Corrupt` when the layers are not those of the column's type.
    pub fn check_shape(&self, shape: &[LayerKind]) -> Result<()> {
        if self.layers.iter().map(|layer| kind(*layer)).eq(shape.iter().copied()) {
            return Ok(());
        }
        Err(Error::corrupt(format!("layers {:?} do not fit the column's type", self.layers)))
    }

    /// Whether the leaf itself has a definition code (which is then 1).
    pub fn leaf_is_nullable(&self) -> bool {
        self.layers.first() == Some(&RepDefLayer::NullableItem)
    }

    /// # Errors
    /// `Corrupt` when a level is larger than the layers have.
    pub fn check_levels(&self, rep: Option<&[u16]>, def: Option<&[u16]>) -> Result<()> {
        for (name, levels, max) in [("repetition", rep, self.max_rep), ("definition", def, self.max_def)] {
            let largest = levels.unwrap_or_default().iter().copied().max().unwrap_or(0);
            if largest > max {
                return Err(Error::corrupt(format!("{name} level {largest}, at most {max} by the page's layers")));
            }
        }
        Ok(())
    }

    /// Visible entries among some definition levels.
    pub fn count_visible(&self, def: &[u16]) -> usize {
        def.iter().filter(|&&def| def <= self.max_visible).count()
    }
}

/// Levels of the rows that were read of one page, consumed layer by layer from the leaf outwards.
#[derive(Debug, Clone)]
pub struct Levels {
    layers: Rc<Layers>,
    rep: Option<Vec<u16>>,
    def: Option<Vec<u16>>,
    entries: usize,
    /// Layers consumed.
    next: usize,
    /// Definition codes of the layers consumed.
    codes: u16,
    /// List layers consumed.
    lists: u16,
}

impl Levels {
    /// No entries yet. `has_rep`, `has_def`: whether the page stores such levels; without, all of them are 0 (a row per entry).
    pub fn new(layers: Rc<Layers>, stored: Stored) -> Levels {
        Levels {
            layers,
            rep: stored.rep.then(Vec::new),
            def: stored.def.then(Vec::new),
            entries: 0,
            next: 0,
            codes: 0,
            lists: 0,
        }
    }

    /// Appends entries. A kind of levels that is not stored is given as `None`.
    pub fn extend(&mut self, rep: Option<&[u16]>, def: Option<&[u16]>, entries: usize) {
        if let (Some(all), Some(rep)) = (&mut self.rep, rep) {
            all.extend_from_slice(rep);
        }
        if let (Some(all), Some(def)) = (&mut self.def, def) {
            all.extend_from_slice(def);
        }
        self.entries += entries;
    }

    /// Appends entries of one definition level.
    ///
    /// # Errors
    /// `Corrupt` when they do not fit into memory.
    pub fn extend_def(&mut self, def: u16, entries: usize) -> Result<()> {
        if entries > MAX_UNSTORED_LEVELS {
            return Err(Error::not_supported(format!("{entries} nulls at once")));
        }
        if let Some(all) = &mut self.def {
            all.try_reserve(entries).map_err(|_| Error::corrupt(format!("{entries} levels do not fit into memory")))?;
            all.resize(all.len() + entries, def);
        }
        self.entries += entries;
        Ok(())
    }

    fn next_layer(&mut self, expected: LayerKind) -> Result<RepDefLayer> {
        let layer = self.layers.layers.get(self.next).copied();
        self.next += 1;
        layer
            .filter(|layer| kind(*layer) == expected)
            .ok_or_else(|| Error::corrupt(format!("layers {:?} do not fit the column's type", self.layers.layers)))
    }

    /// Consumes an item layer: appends a validity for every slot of the leaf or struct.
    ///
    /// # Errors
    /// `Corrupt` when the next layer is a list.
    pub fn take_items(&mut self, validity: &mut Validity) -> Result<()> {
        let layer = self.next_layer(LayerKind::Item)?;
        let codes = self.codes;
        self.codes += code_count(layer);
        let Some(def) = &self.def else {
            validity.append_valid(self.entries);
            return Ok(());
        };
        // An entry that belongs to a list further out has no slot here.
        let lists = self.lists;
        let has_slot = |def: u16| self.layers.lists_of_code.get(usize::from(def)).is_some_and(|owner| *owner <= lists);
        let largest = self.layers.max_def;
        // What lies in a null struct is null as well, whether it can be or not: a list in it is, too.
        let may_be_null = (codes + 1..=largest).any(has_slot);
        if !may_be_null {
            validity.append_valid(def.iter().filter(|def| has_slot(**def)).count());
        } else if has_slot(largest) {
            validity.append(&BooleanBuffer::collect_bool(def.len(), |i| def[i] <= codes));
        } else {
            let slots: Vec<bool> = def.iter().filter(|def| has_slot(**def)).map(|def| *def <= codes).collect();
            validity.append(&BooleanBuffer::collect_bool(slots.len(), |i| slots[i]));
        }
        Ok(())
    }

    /// Consumes what a fixed-size list of structs repeats for each of its items: the first entry of every `dimension` is kept.
    ///
    /// # Errors
    /// `Corrupt` when the entries are no whole lists.
    pub fn take_repeats(&mut self, dimension: usize) -> Result<()> {
        if !self.entries.is_multiple_of(dimension) {
            return Err(Error::corrupt(format!("{} items in lists of {dimension}", self.entries)));
        }
        self.entries /= dimension;
        for levels in [&mut self.rep, &mut self.def].into_iter().flatten() {
            let mut at = 0;
            levels.retain(|_| {
                at += 1;
                (at - 1) % dimension == 0
            });
        }
        Ok(())
    }

    /// Consumes a list layer: appends an offset and a validity for every list.
    ///
    /// # Errors
    /// `Corrupt` when the next layer is an item.
    pub fn take_lists(&mut self, offsets: &mut ListOffsets, validity: &mut Validity) -> Result<()> {
        let layer = self.next_layer(LayerKind::List)?;
        let inside = self.codes;
        let (null, empty) = match layer {
            RepDefLayer::NullableList => (Some(inside + 1), None),
            RepDefLayer::EmptyableList => (None, Some(inside + 1)),
            RepDefLayer::NullAndEmptyList => (Some(inside + 1), Some(inside + 2)),
            _ => (None, None),
        };
        self.codes += code_count(layer);
        self.lists += 1;
        // A struct directly above that is null has one placeholder list, null as well.
        let above = self.layers.layers.iter().skip(self.next).take_while(|layer| kind(**layer) == LayerKind::Item);
        let limit = self.codes + above.map(|layer| code_count(*layer)).sum::<u16>();

        let Some(rep) = &mut self.rep else {
            return Err(Error::corrupt("a list without repetition levels"));
        };
        let mut kept = 0;
        let mut valid = BooleanBufferBuilder::new(0);
        let mut has_nulls = false;
        for i in 0..rep.len() {
            if rep[i] == 0 {
                offsets.items += 1;
                continue;
            }
            let def = self.def.as_ref().map_or(0, |def| def[i]);
            if def <= inside {
                offsets.starts.push(offsets.items);
                offsets.items += 1;
                valid.append(true);
            } else if Some(def) == empty {
                offsets.starts.push(offsets.items);
                valid.append(true);
            } else if Some(def) == null || def <= limit {
                offsets.starts.push(offsets.items);
                valid.append(false);
                has_nulls = true;
            }
            rep[kept] = rep[i] - 1;
            if let Some(all) = &mut self.def {
                all[kept] = def;
            }
            kept += 1;
        }
        rep.truncate(kept);
        if let Some(def) = &mut self.def {
            def.truncate(kept);
        }
        self.entries = kept;
        let valid = valid.finish();
        if has_nulls {
            validity.append(&valid);
        } else {
            validity.append_valid(valid.len());
        }
        Ok(())
    }
}

/// Which kinds of levels a page stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub rep: bool,
    pub def: bool,
}

/// Offsets of a list array being collected over pages.
#[derive(Debug, Default)]
pub struct ListOffsets {
    /// First item of each list.
    pub starts: Vec<i64>,
    /// Items so far: the end of the last list.
    pub items: i64,
}

/// Validity being collected over pages; no bits are made while everything is valid.
#[derive(Default)]
pub struct Validity {
    len: usize,
    bits: Option<BooleanBufferBuilder>,
}

impl Validity {
    pub fn append_valid(&mut self, count: usize) {
        self.len += count;
        if let Some(bits) = &mut self.bits {
            bits.append_n(count, true);
        }
    }

    fn append(&mut self, valid: &BooleanBuffer) {
        let bits = self.bits.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(self.len + valid.len());
            bits.append_n(self.len, true);
            bits
        });
        bits.append_buffer(valid);
        self.len += valid.len();
    }

    pub fn slot_count(&self) -> usize {
        self.len
    }

    pub fn finish(self) -> Option<NullBuffer> {
        let nulls = NullBuffer::new(self.bits?.finish());
        (nulls.null_count() > 0).then_some(nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RepDefLayer::{
        AllValidItem as I, AllValidList as L, EmptyableList as LE, NullAndEmptyList as LNE, NullableItem as IN,
        NullableList as LN,
    };

    fn layers(layers: &[RepDefLayer]) -> Rc<Layers> {
        Rc::new(Layers::parse(&layers.iter().map(|layer| *layer as i32).collect::<Vec<_>>()).unwrap())
    }

    fn levels(kinds: &[RepDefLayer], rep: &[u16], def: &[u16]) -> Levels {
        let stored = Stored { rep: !rep.is_empty(), def: !def.is_empty() };
        let mut levels = Levels::new(layers(kinds), stored);
        levels.extend(stored.rep.then_some(rep), stored.def.then_some(def), rep.len().max(def.len()));
        levels
    }

    fn items(levels: &mut Levels) -> Vec<bool> {
        let mut validity = Validity::default();
        levels.take_items(&mut validity).unwrap();
        let len = validity.slot_count();
        validity.finish().map_or(vec![true; len], |nulls| nulls.iter().collect())
    }

    fn lists(levels: &mut Levels) -> (Vec<i64>, Vec<bool>) {
        let (mut offsets, mut validity) = (ListOffsets::default(), Validity::default());
        levels.take_lists(&mut offsets, &mut validity).unwrap();
        let len = validity.slot_count();
        let mut all = offsets.starts;
        all.push(offsets.items);
        (all, validity.finish().map_or(vec![true; len], |nulls| nulls.iter().collect()))
    }

    #[test]
    fn codes_count_from_the_inside_and_null_comes_before_empty() {
        let layers = layers(&[IN, I, LNE, IN, LN]);
        assert_eq!((layers.max_rep, layers.max_def, layers.max_visible), (2, 5, 1));
        assert_eq!(layers.lists_of_code, vec![0, 0, 1, 1, 1, 2]);
    }

    // L3
    #[test]
    fn what_cannot_be_null_is_null_in_a_null_struct() {
        // Of a null struct of a struct of lists: [1, 2], null, [3].
        let mut page = levels(&[I, L, I, IN], &[1, 0, 1, 1], &[0, 0, 1, 0]);
        assert_eq!(items(&mut page), vec![true, true, true]);
        assert_eq!(lists(&mut page), (vec![0, 2, 2, 3], vec![true, false, true]));
        assert_eq!(items(&mut page), vec![true, false, true]);
        assert_eq!(items(&mut page), vec![true, false, true]);
    }

    // L1
    #[test]
    fn null_empty_and_filled_lists_of_one_page() {
        // ["x", "yz"], [], null, ["w", null, "q"]
        let mut page = levels(&[IN, LNE], &[1, 0, 1, 1, 1, 0, 0], &[0, 0, 3, 2, 0, 1, 0]);
        assert_eq!(items(&mut page), vec![true, true, true, false, true]);
        assert_eq!(lists(&mut page), (vec![0, 2, 2, 2, 5], vec![true, true, false, true]));
    }

    // L1
    #[test]
    fn a_list_that_begins_with_a_null_item_is_not_lost_when_no_list_is_null() {
        let mut page = levels(&[IN, L], &[1, 0, 1], &[1, 0, 1]);
        assert_eq!(items(&mut page), vec![false, true, false]);
        assert_eq!(lists(&mut page), (vec![0, 2, 3], vec![true, true]));
    }

    // L3
    #[test]
    fn a_null_struct_over_a_list_has_a_null_placeholder_list() {
        // {[1]}, null, {[]}: leaf, list, struct
        let mut page = levels(&[I, LE, IN], &[1, 1, 1], &[0, 2, 1]);
        assert_eq!(items(&mut page), vec![true]);
        assert_eq!(lists(&mut page), (vec![0, 1, 1, 1], vec![true, false, true]));
        assert_eq!(items(&mut page), vec![true, false, true]);
    }

    // L4
    #[test]
    fn a_list_decided_further_out_makes_no_list_inside() {
        // [[1], [2, 3]], null, []
        let mut page = levels(&[I, L, LNE], &[2, 1, 0, 2, 2], &[0, 0, 0, 1, 2]);
        assert_eq!(items(&mut page), vec![true; 3]);
        assert_eq!(lists(&mut page), (vec![0, 1, 3], vec![true, true]));
        assert_eq!(lists(&mut page), (vec![0, 2, 2, 2], vec![true, false, true]));
    }

    // L4
    #[test]
    fn lists_of_lists_of_lists_begin_at_their_rank() {
        // [[[1, 2], []], [[3]]], [], [null, [null]]
        let mut page = levels(&[I, LNE, LN, LE], &[3, 0, 1, 2, 3, 3, 2], &[0, 0, 2, 0, 4, 3, 1]);
        assert_eq!(items(&mut page), vec![true; 3]);
        assert_eq!(lists(&mut page), (vec![0, 2, 2, 3, 3], vec![true, true, true, false]));
        assert_eq!(lists(&mut page), (vec![0, 2, 3, 3, 4], vec![true, true, false, true]));
        assert_eq!(lists(&mut page), (vec![0, 2, 2, 4], vec![true, true, true]));
    }

    // L4
    #[test]
    fn struct_nulls_outside_of_lists_count_no_item() {
        // leaf, struct, list, struct: null outer struct has no inner struct slot
        let mut page = levels(&[IN, IN, LN, IN], &[1, 0, 0, 1, 1], &[0, 1, 2, 3, 4]);
        assert_eq!(items(&mut page), vec![true, false, false]);
        assert_eq!(items(&mut page), vec![true, true, false]);
        assert_eq!(lists(&mut page), (vec![0, 3, 3, 3], vec![true, false, false]));
        assert_eq!(items(&mut page), vec![true, true, false]);
    }

    #[test]
    fn pages_without_nulls_are_valid_beside_pages_with_some() {
        let mut validity = Validity::default();
        levels(&[I], &[], &[]).take_items(&mut validity).unwrap();
        validity.append_valid(2);
        levels(&[IN], &[], &[0, 1]).take_items(&mut validity).unwrap();
        validity.append_valid(1);
        assert_eq!(validity.finish().unwrap().iter().collect::<Vec<_>>(), vec![true, true, true, false, true]);
    }

    #[test]
    fn levels_beyond_the_layers_and_wrong_shapes_are_corrupt() {
        let layers = layers(&[IN, L]);
        assert!(layers.check_levels(Some(&[1, 0]), Some(&[1, 0])).is_ok());
        assert!(layers.check_levels(Some(&[2]), None).is_err());
        assert!(layers.check_levels(None, Some(&[2])).is_err());
        assert!(layers.check_shape(&[LayerKind::Item, LayerKind::List]).is_ok());
        assert!(layers.check_shape(&[LayerKind::Item]).is_err());
        assert!(Layers::parse(&[]).is_err());
        assert!(Layers::parse(&[0]).is_err());
        assert!(Layers::parse(&[7]).is_err());
    }
}
