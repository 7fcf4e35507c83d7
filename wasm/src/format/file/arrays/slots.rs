//! Values being collected, with their validity.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::error::Result;
use crate::format::file::encoding::{Values, bitmap};
use crate::format::file::layout::append::push_nulls;

/// Values of one column, or of the items of its fixed-size lists.
pub(super) struct Slots {
    pub(super) values: Values,
    /// Validity of the first `marked` values, LSB first; those behind are valid.
    valid: Vec<u8>,
    marked: usize,
}

impl Slots {
    pub(super) fn new(values: Values) -> Slots {
        Slots { values, valid: Vec::new(), marked: 0 }
    }

    /// Slots that go on with a bitmap of all their values; no bitmap: all are valid.
    pub(super) fn with_validity(values: Values, valid: Option<Vec<u8>>) -> Slots {
        let marked = if valid.is_some() { values.len() } else { 0 };
        Slots { values, valid: valid.unwrap_or_default(), marked }
    }

    /// Says of `count` values from `start` on, none behind them, which are valid: bits from `first_bit` on. What was null stays null.
    pub(super) fn mark(&mut self, start: usize, bits: &[u8], first_bit: usize, count: usize) {
        let is_valid = |at: usize| {
            let bit = first_bit + at;
            bits.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        };
        if self.marked <= start {
            if (0..count).all(is_valid) {
                return;
            }
            bitmap::append_run(&mut self.valid, self.marked, start - self.marked, true);
            bitmap::append(&mut self.valid, start, bits, first_bit, count);
            self.marked = start + count;
            return;
        }
        self.mark_up_to(start + count);
        for at in (0..count).filter(|at| !is_valid(*at)) {
            self.clear(start + at);
        }
    }

    /// Makes one value null.
    pub(super) fn mark_null(&mut self, at: usize) {
        self.mark_up_to(at + 1);
        self.clear(at);
    }

    /// Appends nulls.
    ///
    /// # Errors
    /// `Corrupt` when they do not fit into memory.
    pub(super) fn push_nulls(&mut self, count: usize) -> Result<()> {
        let start = self.values.len();
        push_nulls(&mut self.values, count)?;
        self.mark_up_to(start);
        bitmap::append_run(&mut self.valid, start, count, false);
        self.marked = start + count;
        Ok(())
    }

    pub(super) fn is_null(&self, at: usize) -> bool {
        at < self.marked && self.valid.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 0)
    }

    /// Values and the validity of each; no bitmap when nothing was ever null.
    pub(super) fn into_parts(mut self) -> (Values, Option<Vec<u8>>) {
        if self.marked == 0 {
            return (self.values, None);
        }
        self.mark_up_to(self.values.len());
        (self.values, Some(self.valid))
    }

    /// Values and nulls as Arrow has them.
    pub(super) fn finish(self) -> (Values, Option<NullBuffer>) {
        let len = self.values.len();
        let (values, valid) = self.into_parts();
        let nulls = valid.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, len)));
        (values, nulls.filter(|nulls| nulls.null_count() > 0))
    }

    fn mark_up_to(&mut self, end: usize) {
        if self.marked < end {
            bitmap::append_run(&mut self.valid, self.marked, end - self.marked, true);
            self.marked = end;
        }
    }

    fn clear(&mut self, at: usize) {
        if let Some(byte) = self.valid.get_mut(at / 8) {
            *byte &= !(1 << (at % 8));
        }
    }
}

/// No values of a shape.
pub(super) fn empty_like(values: &Values) -> Values {
    match values {
        Values::Fixed { byte_width, .. } => Values::Fixed { byte_width: *byte_width, bytes: Vec::new() },
        Values::Bits { .. } => Values::Bits { bitmap: Vec::new(), len: 0 },
        Values::Variable { .. } => Values::Variable { offsets: vec![0], data: Vec::new() },
        Values::FixedSizeList { dimension, items, .. } => {
            Values::FixedSizeList { dimension: *dimension, len: 0, validity: None, items: Box::new(empty_like(items)) }
        }
        Values::Struct { fields, .. } => Values::Struct { fields: fields.iter().map(empty_like).collect(), len: 0 },
        Values::Nulls { .. } => Values::Nulls { len: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_of_several_sources_go_together() {
        let mut slots = Slots::new(Values::Fixed { byte_width: 1, bytes: vec![0; 10] });
        slots.mark(0, &[0xff, 0xff], 3, 10);
        assert_eq!(slots.marked, 0);
        slots.mark_null(4);
        slots.mark(2, &[0b1110_0110], 1, 5);
        assert_eq!((0..10).filter(|at| slots.is_null(*at)).collect::<Vec<_>>(), [4, 5]);
        slots.push_nulls(3).unwrap();
        let (values, nulls) = slots.finish();
        assert_eq!((values.len(), nulls.map(|nulls| nulls.null_count())), (13, Some(5)));
    }
}
