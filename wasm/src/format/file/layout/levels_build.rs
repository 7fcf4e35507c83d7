//! Repetition and definition levels of a leaf, built from Arrow arrays.
//!
//! Layers are counted from the leaf outwards. Each nullable item layer has a definition code for "null here", each list layer one for
//! "null list" and one for "empty list"; 0 is an ordinary value. Every layer gets its codes, whether a page needs them or not: readers
//! disagree about pages that leave some layers without codes below layers that have them.
//!
//! A repetition level says how many lists, counted from the innermost, begin anew at an entry; a row always begins with the greatest.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType;

use super::leaf_values::{LeafSource, LeafType};
use crate::error::{Error, Result};
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
    Struct { child: usize },
    List,
    LargeList,
    Leaf,
}

impl Step {
    fn is_list(self) -> bool {
        matches!(self, Step::List | Step::LargeList)
    }
}

/// A leaf of the schema and the layers above it: one column of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeafPath {
    pub(crate) field: FieldId,
    /// Index of the top-level field.
    pub(crate) root: usize,
    pub(crate) leaf: LeafType,
    /// Outermost first; the last one is the leaf.
    layers: Vec<Layer>,
    /// The repetition level of a row's first entry; 0 without lists.
    pub(crate) max_rep: u16,
    pub(crate) max_def: u16,
    /// Entries with a definition level up to this one own a slot of the values.
    pub(crate) max_visible: u16,
}

/// Levels of some rows. Without lists an entry is a row, `rep` and `slots` are empty, and so is `def` when nothing is null.
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
}

enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl Offsets {
    // Arrow's offsets are never negative.
    fn at(&self, index: usize) -> usize {
        match self {
            Offsets::Small(offsets) => offsets[index] as usize,
            Offsets::Large(offsets) => offsets[index] as usize,
        }
    }
}

impl LeafPath {
    /// The columns of a schema: its leaves in pre-order.
    ///
    /// # Errors
    /// `NotSupported` naming the column and its type.
    pub(crate) fn all_of(schema: &Schema) -> Result<Vec<LeafPath>> {
        let mut paths = Vec::new();
        for (root, field) in schema.fields.iter().enumerate() {
            collect(field, root, &mut Vec::new(), &mut paths)?;
        }
        Ok(paths)
    }

    fn new(field: &Field, root: usize, leaf: LeafType, mut layers: Vec<Layer>) -> LeafPath {
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
        LeafPath { field: field.id, root, leaf, layers, max_rep: rank, max_def: code, max_visible }
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

    /// The layers as a page names them, innermost first, with a code for everything or, where no entry is null, for nothing.
    pub(crate) fn page_layers(&self, with_codes: bool) -> Vec<i32> {
        let kind = |layer: &Layer| match (layer.step.is_list(), with_codes) {
            (false, false) => RepDefLayer::AllValidItem,
            (false, true) => RepDefLayer::NullableItem,
            (true, false) => RepDefLayer::AllValidList,
            (true, true) => RepDefLayer::NullAndEmptyList,
        };
        self.layers.iter().rev().map(|layer| kind(layer) as i32).collect()
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
            let mut nulls = current.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
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
                Step::Leaf => {
                    if self.leaf == LeafType::Null {
                        nulls = Some(NullBuffer::new_null(current.len()));
                    }
                    (None, current.clone())
                }
            };
            nodes.push(Node { nulls, offsets });
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
        for (layer, node) in self.layers.iter().zip(&arrays.nodes) {
            let Some(nulls) = &node.nulls else { continue };
            for (index, row) in rows.clone().enumerate().filter(|(_, row)| nulls.is_null(*row)) {
                if def.is_empty() {
                    def.resize(rows.len(), 0);
                }
                if def[index] != 0 {
                    continue;
                }
                if !layer.nullable {
                    return Err(null_error(layer, first_row + (row - rows.start) as u64));
                }
                def[index] = layer.null_code;
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
        .map(|(def, slot)| if *def == 0 { (offsets.at(slot + 1) - offsets.at(*slot)).max(1) } else { 1 })
        .sum();
    let mut out = Levels {
        rep: Vec::with_capacity(elements),
        def: Vec::with_capacity(elements),
        slots: Vec::with_capacity(elements),
    };
    for ((rep, def), slot) in levels.rep.iter().zip(&levels.def).zip(&levels.slots) {
        let elements = if *def == 0 { offsets.at(*slot)..offsets.at(slot + 1) } else { 0..0 };
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
        for offsets in self.nodes.iter().filter_map(|node| node.offsets.as_ref()) {
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

fn collect(field: &Field, root: usize, above: &mut Vec<Layer>, paths: &mut Vec<LeafPath>) -> Result<()> {
    let name = match above.last() {
        Some(parent) => format!("{}.{}", parent.name, field.name),
        None => field.name.clone(),
    };
    let unsupported = || Error::not_supported(format!("writing column \"{name}\" of type {}", field.data_type));
    if field.is_packed_struct() || field.is_blob_v2() || field.metadata.contains_key("lance-encoding:blob") {
        return Err(Error::not_supported(format!("writing column \"{name}\" with packed or blob storage")));
    }
    let layer =
        |step| Layer { step, name: name.clone(), nullable: field.nullable, null_code: 0, empty_code: 0, rank: 0 };
    let inner_step = match &field.data_type {
        DataType::Struct(members) if !members.is_empty() && members.len() == field.children.len() => None,
        DataType::List(_) if field.children.len() == 1 => Some(Step::List),
        DataType::LargeList(_) if field.children.len() == 1 => Some(Step::LargeList),
        data_type => {
            let leaf = LeafType::of(data_type).ok_or_else(unsupported)?;
            if leaf == LeafType::Null && !field.nullable {
                return Err(Error::schema(format!("column \"{name}\" of type null has to take nulls")));
            }
            let mut layers = above.clone();
            layers.push(layer(Step::Leaf));
            paths.push(LeafPath::new(field, root, leaf, layers));
            return Ok(());
        }
    };
    for (child, inner) in field.children.iter().enumerate() {
        above.push(layer(inner_step.unwrap_or(Step::Struct { child })));
        collect(inner, root, above, paths)?;
        above.pop();
    }
    Ok(())
}
