//! The values and levels of one leaf column, collected page by page.
//!
//! Pages of a column may differ in their encodings, and so in the shape of what they decode to. A leaf's values have the shape of the
//! column's type; a page of the same shape is decoded right into them.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::format::file::encoding::{self, Values};
use crate::format::file::layout::append::{
    Indices, append, checked_index, empty_values, gather, has_same_shape, push_nulls, push_repeated, reserve_for,
    scalar_values, value_bytes,
};
use crate::format::file::layout::rep_def::{LayerKind, Layers, Levels, Stored};
use crate::format::proto::CompressiveEncoding;

/// One leaf column being read.
pub struct Leaf {
    /// Values; of a dictionary column the keys, 32 bits each.
    pub values: Values,
    /// The distinct values of a dictionary column.
    pub dictionary: Option<Dictionary>,
    /// One for every page that was read of.
    pub levels: Vec<Levels>,
    shape: Vec<LayerKind>,
    is_empty_struct: bool,
}

/// The values of a dictionary column: each once, whichever pages it came from.
pub struct Dictionary {
    pub values: Values,
    keys: HashMap<Vec<u8>, u32>,
}

impl Leaf {
    /// An empty leaf. `shape` are the layers that its pages must have, innermost first.
    ///
    /// # Errors
    /// `NotSupported` naming the type.
    pub fn new(data_type: &DataType, shape: Vec<LayerKind>) -> Result<Leaf> {
        let (values, dictionary) = match data_type {
            DataType::Dictionary(_, value_type) => {
                let values = empty_values(value_type)?;
                if !matches!(values, Values::Fixed { .. } | Values::Variable { .. } | Values::Bits { .. }) {
                    return Err(Error::not_supported(format!("dictionaries of {value_type}")));
                }
                (Values::Fixed { byte_width: 4, bytes: Vec::new() }, Some(Dictionary::new(values)))
            }
            other => (empty_values(other)?, None),
        };
        let is_empty_struct = matches!(data_type, DataType::Struct(fields) if fields.is_empty());
        Ok(Leaf { values, dictionary, levels: Vec::new(), shape, is_empty_struct })
    }

    /// Everything that was collected; the leaf is empty afterwards.
    pub fn take(&mut self) -> (Values, Option<Dictionary>, Vec<Levels>) {
        let values = std::mem::replace(&mut self.values, Values::Nulls { len: 0 });
        (values, self.dictionary.take(), std::mem::take(&mut self.levels))
    }

    /// Starts the levels of a page.
    ///
    /// # Errors
    /// `Corrupt` when the page's layers do not fit the column's type.
    pub fn begin_page(&mut self, layers: &Rc<Layers>, stored: Stored) -> Result<&mut Levels> {
        layers.check_shape(&self.shape)?;
        self.levels.push(Levels::new(layers.clone(), stored));
        self.levels.last_mut().ok_or_else(|| Error::internal("levels were just pushed"))
    }

    /// Whether values are there without being stored: an empty struct looks like a column of nulls, and is none.
    pub fn is_empty_struct(&self) -> bool {
        self.is_empty_struct
    }

    /// Makes room for values that are about to be decoded of some bytes.
    pub fn reserve(&mut self, count: usize, byte_count: usize) {
        reserve_for(&mut self.values, count, byte_count);
    }

    /// Decodes a mini-block chunk and appends some of its values: ascending, disjoint `takes`. The encoding comes with empty values of
    /// its shape.
    ///
    /// # Errors
    /// As [`encoding::decode_chunk`].
    pub fn push_chunk(
        &mut self,
        encoding: (&CompressiveEncoding, &Values),
        buffers: &[&[u8]],
        count: usize,
        takes: &[Range<usize>],
        dictionary: Option<&Values>,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (takes.first(), takes.last()) else { return Ok(()) };
        let (encoding, page_values) = encoding;
        if let ([take], None, None) = (takes, dictionary, &self.dictionary)
            && has_same_shape(page_values, &self.values)
        {
            return encoding::decode_chunk(encoding, buffers, count, take.clone(), &mut self.values);
        }
        let hull = first.start..last.end;
        let mut decoded = page_values.clone();
        encoding::decode_chunk(encoding, buffers, count, hull.clone(), &mut decoded)?;
        for take in takes {
            let take = take.start - hull.start..take.end - hull.start;
            match (dictionary, &mut self.dictionary) {
                (None, None) => append(&mut self.values, &decoded, take)?,
                (Some(dictionary), None) => gather(&mut self.values, dictionary, &decoded, take)?,
                (Some(dictionary), Some(own)) => own.translate(&mut self.values, dictionary, &decoded, take)?,
                (None, Some(_)) => return Err(Error::corrupt("a dictionary column without a dictionary")),
            }
        }
        Ok(())
    }

    /// Appends values as they come from a full-zip page.
    ///
    /// # Errors
    /// `Corrupt` when they are not of the column's type.
    pub fn push_values(&mut self, values: &Values) -> Result<()> {
        match &mut self.dictionary {
            None => append(&mut self.values, values, 0..values.len()),
            Some(_) => Err(Error::corrupt("a dictionary column without a dictionary")),
        }
    }

    /// Appends one value `count` times.
    ///
    /// # Errors
    /// `Corrupt` when it is not of the column's type.
    pub fn push_scalar(&mut self, scalar: &[u8], count: usize) -> Result<()> {
        match &mut self.dictionary {
            None => {
                let one = scalar_values(&self.values, scalar)?;
                push_repeated(&mut self.values, &one, count)
            }
            Some(dictionary) => {
                let one = scalar_values(&dictionary.values, scalar)?;
                let key = dictionary.key(&one, 0)?;
                let key = Values::Fixed { byte_width: 4, bytes: key.to_le_bytes().to_vec() };
                push_repeated(&mut self.values, &key, count)
            }
        }
    }

    /// Appends placeholders for nulls.
    ///
    /// # Errors
    /// `Corrupt` when they do not fit into memory.
    pub fn push_nulls(&mut self, count: usize) -> Result<()> {
        push_nulls(&mut self.values, count)
    }
}

impl Dictionary {
    /// A dictionary of no values; `values` says of which shape they are.
    pub fn new(values: Values) -> Dictionary {
        Dictionary { values, keys: HashMap::new() }
    }

    /// The key of a value, which is added when it is new.
    ///
    /// # Errors
    /// `Corrupt` when there are too many.
    pub fn key(&mut self, values: &Values, index: usize) -> Result<u32> {
        let bytes = value_bytes(values, index)?;
        if let Some(key) = self.keys.get(bytes) {
            return Ok(*key);
        }
        let key = u32::try_from(self.values.len()).map_err(|_| Error::corrupt("a dictionary of too many values"))?;
        append(&mut self.values, values, index..index + 1)?;
        self.keys.insert(bytes.to_vec(), key);
        Ok(key)
    }

    /// Appends the keys, in this dictionary, of values that a page gives by indices into its own.
    fn translate(&mut self, keys: &mut Values, page: &Values, indices: &Values, take: Range<usize>) -> Result<()> {
        let Values::Fixed { bytes, .. } = keys else { return Err(Error::internal("keys are 32-bit values")) };
        let mut known: HashMap<usize, u32> = HashMap::new();
        for index in Indices::new(indices, take)? {
            let index = checked_index(index, page.len())?;
            let key = match known.get(&index) {
                Some(key) => *key,
                None => {
                    let key = self.key(page, index)?;
                    known.insert(index, key);
                    key
                }
            };
            bytes.extend_from_slice(&key.to_le_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_of_pages_in_any_form_go_together() {
        let mut leaf = Leaf::new(&DataType::Boolean, vec![]).unwrap();
        leaf.push_scalar(&[1], 3).unwrap();
        leaf.push_scalar(&[0], 2).unwrap();
        leaf.push_values(&Values::Fixed { byte_width: 1, bytes: vec![0, 7, 1] }).unwrap();
        leaf.push_nulls(2).unwrap();
        leaf.push_values(&Values::Bits { bitmap: vec![0b101], len: 3 }).unwrap();
        assert_eq!(leaf.values, Values::Bits { bitmap: vec![0b1100_0111, 0b1_0100], len: 13 });
        assert!(leaf.push_values(&Values::Bits { bitmap: vec![1], len: 9 }).is_err());
    }

    #[test]
    fn a_claim_of_more_than_memory_holds_is_an_error() {
        let mut leaf = Leaf::new(&DataType::Int64, vec![]).unwrap();
        assert!(leaf.push_nulls(usize::MAX / 4).is_err());
        assert!(leaf.push_scalar(&[1; 8], usize::MAX / 16).is_err());
    }
}
