//! Repetition and definition levels of a leaf, built from Arrow arrays.
//!
//! Layers are counted from the leaf outwards. Each nullable item layer has a definition code for "null here", each list layer one for
//! "null list" and one for "empty list"; 0 is an ordinary value. A page leaves out codes that it does not need, unless structs in or
//! around lists are null: readers disagree about lists without codes then.
//!
//! A repetition level says how many lists, counted from the innermost, begin anew at an entry; a row always begins with the greatest.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::leaf_values::{LeafSource, LeafType, Offsets};
use super::options::EncodingOptions;
use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::proto::RepDefLayer;
use crate::format::table::{Field, FieldId, Schema};

/// One node between a row and a leaf value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layer {
    step: Step,
    /// Dotted names down to this node.
    name: String,
    nullable: bool,
    null_code: u16,
    /// Lists only.
    empty_code: u16,
    /// List layers at or inside this one; lists only.
    rank: u16,
}

/// How the next inner node is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Struct {
        child: usize,
    },
    List,
    LargeList,
    /// A list of structs of key and value.
    Map,
    /// Of structs: so many entries for each one of the list.
    FixedSizeList {
        dimension: usize,
    },
    Leaf,
}

impl Step {
    fn is_list(self) -> bool {
        matches!(self, Step::List | Step::LargeList | Step::Map)
    }
}

/// A leaf of the schema and the layers above it: one column of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafPath {
    pub(crate) field: FieldId,
    /// Index of the top-level field.
    pub(crate) root: usize,
    pub(crate) leaf: LeafType,
    pub(crate) options: EncodingOptions,
    /// Entries of a row without lists: the dimensions of the fixed-size lists of structs, multiplied.
    pub(crate) entries_per_row: usize,
    /// Outermost first; the last one is the leaf.
    layers: Vec<Layer>,
    /// The repetition level of a row's first entry; 0 without lists.
    pub(crate) max_rep: u16,
    pub(crate) max_def: u16,
    /// Entries with a definition level up to this one own a slot of the values.
    pub(crate) max_visible: u16,
}

/// Levels of some rows. Without lists every row has the same number of entries, `rep` and `slots` are empty, and so is `def` when nothing
/// is null.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) rep: Vec<u16>,
    pub(crate) def: Vec<u16>,
    /// The slot of the leaf array, where `def` is 0.
    pub(crate) slots: Vec<usize>,
}

/// The arrays along a path.
pub(crate) struct PathArrays {
    nodes: Vec<Node>,
    pub(crate) source: LeafSource,
}

struct Node {
    nulls: Option<NullBuffer>,
    offsets: Option<Offsets>,
    /// Slots of the next node for each of this one, without offsets.
    dimension: usize,
}

impl LeafPath {
    /// The columns of a schema: its leaves in pre-order.
    ///
    /// # Errors
    /// `NotSupported` naming the column and its type.
    pub(crate) fn all_of(schema: &Schema, version: FileVersion) -> Result<Vec<LeafPath>> {
        let mut paths = Vec::new();
        for (index, field) in schema.fields.iter().enumerate() {
            let mut collector = Collector { version, index, root: field, above: Vec::new(), paths: &mut paths };
            collector.collect(field)?;
        }
        Ok(paths)
    }

    fn new(field: &Field, root: usize, leaf: LeafType, options: EncodingOptions, mut layers: Vec<Layer>) -> LeafPath {
        let (mut code, mut rank, mut max_visible) = (0, 0, 0);
        for layer in layers.iter_mut().rev() {
            code += 1;
            layer.null_code = code;
            if layer.step.is_list() {
                code += 1;
                layer.empty_code = code;
                rank += 1;
                layer.rank = rank;
            } else if rank == 0 {
                max_visible = code;
            }
        }
        let dimension = |layer: &Layer| match layer.step {
            Step::FixedSizeList { dimension } => dimension,
            _ => 1,
        };
        let entries_per_row = layers.iter().map(dimension).product();
        LeafPath {
            field: field.id,
            root,
            leaf,
            options,
            entries_per_row,
            layers,
            max_rep: rank,
            max_def: code,
            max_visible,
        }
    }

    /// Dotted names from the top-level field to the leaf.
    pub(crate) fn name(&self) -> &str {
        self.layers.last().map_or("", |layer| layer.name.as_str())
    }

    pub(crate) fn has_lists(&self) -> bool {
        self.max_rep > 0
    }

    /// Just a column: no struct, no list.
    pub(crate) fn is_flat(&self) -> bool {
        self.layers.len() == 1
    }

    /// A struct lies outside of a list.
    pub(crate) fn has_items_outside_lists(&self) -> bool {
        let mut items = false;
        self.layers.iter().any(|layer| {
            items |= !layer.step.is_list();
            items && layer.step.is_list()
        })
    }

    /// The layers as a page names them, innermost first: by their codes or, where no entry is null, without.
    pub(crate) fn page_layers(&self, with_codes: bool) -> Vec<i32> {
        let kind = |layer: &Layer| match (layer.step.is_list(), layer.null_code > 0, layer.empty_code > 0) {
            (false, ..) if !with_codes => RepDefLayer::AllValidItem,
            (true, ..) if !with_codes => RepDefLayer::AllValidList,
            (false, false, _) => RepDefLayer::AllValidItem,
            (false, true, _) => RepDefLayer::NullableItem,
            (true, false, false) => RepDefLayer::AllValidList,
            (true, true, false) => RepDefLayer::NullableList,
            (true, false, true) => RepDefLayer::EmptyableList,
            (true, true, true) => RepDefLayer::NullAndEmptyList,
        };
        self.layers.iter().rev().map(|layer| kind(layer) as i32).collect()
    }

    /// The path without the codes that no entry has, and the definition levels by the codes that are left; smaller levels take fewer
    /// bits. `None` when readers would not agree about it: with null structs around or in lists, and around structs that may hold some, every
    /// layer has all its codes. A list keeps at least one.
    pub(crate) fn with_used_codes(&self, def: &[u16]) -> Option<(LeafPath, Vec<u16>)> {
        let mut used = vec![false; usize::from(self.max_def) + 1];
        def.iter().for_each(|def| {
            if let Some(used) = used.get_mut(usize::from(*def)) {
                *used = true;
            }
        });
        let is_used = |code: u16| used.get(usize::from(code)) == Some(&true);
        let is_struct = |layer: &&Layer| !layer.step.is_list() && layer.step != Step::Leaf;
        let mut structs = self.layers.iter().filter(is_struct);
        let has_null_struct = structs.clone().any(|layer| is_used(layer.null_code));
        // A reader takes the validity of a struct from its first member, and that of a list in it from the list.
        let must_agree = self.has_lists() || structs.nth(1).is_some();
        if used.iter().all(|used| *used) || has_null_struct && must_agree {
            return None;
        }
        let mut path = self.clone();
        let mut codes = vec![0; used.len()];
        let (mut code, mut rank) = (0, 0);
        path.max_visible = 0;
        for layer in path.layers.iter_mut().rev() {
            let is_list = layer.step.is_list();
            let keeps_null = is_used(layer.null_code) || is_list && !is_used(layer.empty_code);
            let mut renumber = |old: &mut u16, keeps: bool| {
                code += u16::from(keeps);
                codes[usize::from(*old)] = code;
                *old = if keeps { code } else { 0 };
            };
            renumber(&mut layer.null_code, keeps_null);
            if is_list {
                let keeps_empty = is_used(layer.empty_code);
                renumber(&mut layer.empty_code, keeps_empty);
                rank += 1;
            } else if rank == 0 {
                path.max_visible = code;
            }
        }
        path.max_def = code;
        codes[0] = 0;
        let def = def.iter().map(|def| codes.get(usize::from(*def)).copied().unwrap_or(0)).collect();
        Some((path, def))
    }

    /// The arrays along this path in a top-level array.
    ///
    /// # Errors
    /// `Schema` when the array is of another shape.
    pub(crate) fn resolve(&self, array: &ArrayRef) -> Result<PathArrays> {
        let mut nodes = Vec::with_capacity(self.layers.len());
        let mut current = array.clone();
        for layer in &self.layers {
            let wrong = || Error::schema(format!("column \"{}\" does not take {}", layer.name, current.data_type()));
            // Those of a dictionary array are also in its values.
            let mut nulls = current.logical_nulls().filter(|nulls| nulls.null_count() > 0);
            let mut dimension = 1;
            let (offsets, next) = match layer.step {
                Step::Struct { child } => {
                    let array = current.as_struct_opt().ok_or_else(wrong)?;
                    (None, array.columns().get(child).cloned().ok_or_else(wrong)?)
                }
                Step::List => {
                    let array = current.as_list_opt::<i32>().ok_or_else(wrong)?;
                    (Some(Offsets::Small(array.offsets().clone())), array.values().clone())
                }
                Step::LargeList => {
                    let array = current.as_list_opt::<i64>().ok_or_else(wrong)?;
                    (Some(Offsets::Large(array.offsets().clone())), array.values().clone())
                }
                Step::Map => {
                    let array = current.as_map_opt().ok_or_else(wrong)?;
                    (Some(Offsets::Small(array.offsets().clone())), Arc::new(array.entries().clone()) as ArrayRef)
                }
                Step::FixedSizeList { dimension: items } => {
                    let array = current.as_fixed_size_list_opt().ok_or_else(wrong)?;
                    if usize::try_from(array.value_length()) != Ok(items) {
                        return Err(wrong());
                    }
                    dimension = items;
                    (None, array.values().clone())
                }
                Step::Leaf => {
                    if self.leaf == LeafType::Null {
                        nulls = Some(NullBuffer::new_null(current.len()));
                    }
                    (None, current.clone())
                }
            };
            nodes.push(Node { nulls, offsets, dimension });
            current = next;
        }
        Ok(PathArrays { nodes, source: LeafSource::of(&current, &self.leaf)? })
    }

    /// The levels of a range of rows of the arrays; `first_row` is the number of `rows.start` in the file, for messages.
    ///
    /// # Errors
    /// `Schema` naming column and row for a null where none may be.
    pub(crate) fn levels(&self, arrays: &PathArrays, rows: Range<usize>, first_row: u64) -> Result<Levels> {
        if self.has_lists() {
            self.nested_levels(arrays, rows, first_row)
        } else {
            self.row_levels(arrays, rows, first_row)
        }
    }

    fn row_levels(&self, arrays: &PathArrays, rows: Range<usize>, first_row: u64) -> Result<Levels> {
        let mut def = Vec::new();
        // Slots of the layer for each row.
        let mut slots_per_row = 1;
        for (layer, node) in self.layers.iter().zip(&arrays.nodes) {
            let slots = rows.start * slots_per_row..rows.end * slots_per_row;
            let entries_per_slot = self.entries_per_row / slots_per_row;
            let per_row = slots_per_row;
            slots_per_row *= node.dimension;
            let Some(nulls) = &node.nulls else { continue };
            for index in (0..slots.len()).filter(|index| nulls.is_null(slots.start + index)) {
                if def.is_empty() {
                    def.resize(rows.len() * self.entries_per_row, 0);
                }
                let Some(entries) = def.get_mut(index * entries_per_slot..(index + 1) * entries_per_slot) else {
                    continue;
                };
                // What is null further out is null as a whole.
                if entries.first() != Some(&0) {
                    continue;
                }
                if !layer.nullable {
                    return Err(null_error(layer, first_row + (index / per_row) as u64));
                }
                entries.fill(layer.null_code);
            }
        }
        Ok(Levels { rep: Vec::new(), def, slots: Vec::new() })
    }

    fn nested_levels(&self, arrays: &PathArrays, rows: Range<usize>, first_row: u64) -> Result<Levels> {
        // Entries that are still open (def 0) stand at a slot of the current layer; the others are decided and only carried along.
        let mut levels =
            Levels { rep: vec![self.max_rep; rows.len()], def: vec![0; rows.len()], slots: rows.collect::<Vec<_>>() };
        for (layer, node) in self.layers.iter().zip(&arrays.nodes) {
            if let Some(nulls) = &node.nulls {
                for index in 0..levels.def.len() {
                    if levels.def[index] != 0 || nulls.is_valid(levels.slots[index]) {
                        continue;
                    }
                    if !layer.nullable {
                        let started = levels.rep[..=index].iter().filter(|rep| **rep == self.max_rep).count() as u64;
                        return Err(null_error(layer, first_row + started.saturating_sub(1)));
                    }
                    levels.def[index] = layer.null_code;
                }
            }
            if let Some(offsets) = &node.offsets {
                levels = open_lists(&levels, layer, offsets);
            }
        }
        Ok(levels)
    }
}

/// Replaces each open list by its elements.
fn open_lists(levels: &Levels, layer: &Layer, offsets: &Offsets) -> Levels {
    let elements: usize = levels
        .def
        .iter()
        .zip(&levels.slots)
        .map(|(def, slot)| if *def == 0 { offsets.items(*slot).len().max(1) } else { 1 })
        .sum();
    let mut out = Levels {
        rep: Vec::with_capacity(elements),
        def: Vec::with_capacity(elements),
        slots: Vec::with_capacity(elements),
    };
    for ((rep, def), slot) in levels.rep.iter().zip(&levels.def).zip(&levels.slots) {
        let elements = if *def == 0 { offsets.items(*slot) } else { 0..0 };
        out.rep.push(*rep);
        out.slots.push(elements.start);
        if elements.is_empty() {
            out.def.push(if *def == 0 { layer.empty_code } else { *def });
            continue;
        }
        out.rep.resize(out.rep.len() + elements.len() - 1, layer.rank - 1);
        out.def.resize(out.def.len() + elements.len(), 0);
        out.slots.extend(elements.skip(1));
    }
    out
}

impl PathArrays {
    /// Bytes that building the levels and copying the values of some rows takes, about.
    pub(crate) fn raw_bytes(&self, rows: Range<usize>) -> u64 {
        let (mut slots, mut entries) = (rows, 0);
        for node in &self.nodes {
            let Some(offsets) = &node.offsets else {
                slots = slots.start * node.dimension..slots.end * node.dimension;
                continue;
            };
            entries += slots.len() as u64;
            slots = offsets.at(slots.start)..offsets.at(slots.end);
            entries += slots.len() as u64;
        }
        self.source.raw_bytes(slots) + entries * 12
    }
}

fn null_error(layer: &Layer, row: u64) -> Error {
    Error::schema(format!("column \"{}\" takes no nulls, but row {row} has one", layer.name))
}

/// Walks down a top-level field to its leaves.
struct Collector<'a> {
    version: FileVersion,
    /// Index of the top-level field.
    index: usize,
    root: &'a Field,
    /// Outermost first.
    above: Vec<Layer>,
    paths: &'a mut Vec<LeafPath>,
}

impl Collector<'_> {
    fn collect(&mut self, field: &Field) -> Result<()> {
        let name = match self.above.last() {
            Some(parent) => format!("{}.{}", parent.name, field.name),
            None => field.name.clone(),
        };
        let refused = |what: &str| Error::not_supported(format!("writing column \"{name}\" {what}"));
        let of_type = || refused(&format!("of type {}", field.data_type));
        if field.is_blob_v2() || field.metadata.contains_key("lance-encoding:blob") {
            return Err(refused("with blob storage"));
        }
        let is_2_1 = self.version < FileVersion::V2_2;
        let layer =
            |step| Layer { step, name: name.clone(), nullable: field.nullable, null_code: 0, empty_code: 0, rank: 0 };
        let has_step = |wanted: fn(Step) -> bool| self.above.iter().any(|layer| wanted(layer.step));
        let in_fixed_size_list = has_step(|step| matches!(step, Step::FixedSizeList { .. }));
        let is_packed = field.is_packed_struct();
        let step = match &field.data_type {
            DataType::Struct(members) if !members.is_empty() && !is_packed => None,
            DataType::List(_) => Some(Step::List),
            DataType::LargeList(_) => Some(Step::LargeList),
            DataType::Map(_, _) if is_2_1 => return Err(refused("of type map in a data file of version 2.1")),
            DataType::Map(_, _) => Some(Step::Map),
            DataType::FixedSizeList(_, dimension) if !field.children.is_empty() => {
                let dimension = usize::try_from(*dimension).ok().filter(|dimension| *dimension > 0);
                // LanceDB cannot write them, either.
                if is_2_1 || has_step(Step::is_list) {
                    return Err(refused(
                        "that holds a fixed-size list of structs in a list or in a file of version 2.1",
                    ));
                }
                Some(Step::FixedSizeList { dimension: dimension.ok_or_else(of_type)? })
            }
            data_type => {
                let leaf = match data_type {
                    DataType::Struct(members) if is_packed => LeafType::packed(members)
                        .filter(|leaf| !(is_2_1 && leaf.is_variable()))
                        .ok_or_else(|| refused("with packed storage of such members"))?,
                    data_type => LeafType::of(data_type).ok_or_else(of_type)?,
                };
                if leaf == LeafType::EmptyStruct && has_step(Step::is_list) {
                    return Err(refused("that is a struct of no fields in a list"));
                }
                if leaf == LeafType::Null && !field.nullable {
                    return Err(Error::schema(format!("column \"{name}\" of type null has to take nulls")));
                }
                let options = EncodingOptions::of(field, self.root);
                let mut layers = self.above.clone();
                layers.push(layer(Step::Leaf));
                self.paths.push(LeafPath::new(field, self.index, leaf, options, layers));
                return Ok(());
            }
        };
        // LanceDB writes them, and cannot read what it wrote.
        if in_fixed_size_list && step.is_some_and(Step::is_list) {
            return Err(refused("that holds a list in a fixed-size list of structs"));
        }
        if step.is_some() && field.children.len() != 1 {
            return Err(of_type());
        }
        for (child, inner) in field.children.iter().enumerate() {
            self.above.push(layer(step.unwrap_or(Step::Struct { child })));
            self.collect(inner)?;
            self.above.pop();
        }
        Ok(())
    }
}
