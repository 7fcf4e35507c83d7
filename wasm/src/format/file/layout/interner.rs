//! Numbers for the distinct values of a page, in the order of their first occurrence.

use crate::format::file::encoding::Values;

/// Slots of an empty table; a power of two.
const MIN_SLOTS: usize = 64;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Distinct byte strings.
pub(crate) struct Interner {
    /// `number + 1` of the value whose hash leads here, or 0; never more than half full.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    offsets: Vec<u64>,
    data: Vec<u8>,
}

impl Interner {
    pub(crate) fn new() -> Interner {
        Interner { slots: vec![0; MIN_SLOTS], hashes: Vec::new(), offsets: vec![0], data: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of the distinct values.
    pub(crate) fn data_bytes(&self) -> usize {
        self.data.len()
    }

    /// The number of a value that was seen.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        self.look_up(value, hash(value)).ok()
    }

    /// The number of a value, or the slot for it.
    fn look_up(&self, value: &[u8], hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        // Ends at a free slot: at least half of them are.
        while let Some(number) = self.slots[slot].checked_sub(1) {
            let index = number as usize;
            if self.hashes[index] == hash && self.value(index) == value {
                return Ok(number);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    /// The number of a value, a new one if it was not seen yet.
    pub(crate) fn number(&mut self, value: &[u8]) -> u32 {
        let hash = hash(value);
        let slot = match self.look_up(value, hash) {
            Ok(number) => return number,
            Err(slot) => slot,
        };
        let number = self.hashes.len() as u32;
        self.slots[slot] = number + 1;
        self.hashes.push(hash);
        self.data.extend_from_slice(value);
        self.offsets.push(self.data.len() as u64);
        if self.hashes.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// The distinct values in the order of their numbers; all of one width when that is given.
    pub(crate) fn into_values(self, byte_width: Option<usize>) -> Values {
        match byte_width {
            Some(byte_width) => Values::Fixed { byte_width, bytes: self.data },
            None => Values::Variable { offsets: self.offsets, data: self.data },
        }
    }

    fn value(&self, index: usize) -> &[u8] {
        &self.data[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![0; mask + 1];
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number as u32 + 1;
        }
    }
}

fn hash(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let mut hash = value.len() as u64;
    let mut mix = |word: u64| {
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 29;
    };
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last));
    }
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_number_and_others_another() {
        let mut interner = Interner::new();
        let numbers: Vec<_> =
            (0..20_000_u32).map(|i| interner.number(&vec![(i % 251) as u8; (i % 1000) as usize % 20])).collect();
        assert_eq!(numbers[..5], [0, 1, 2, 3, 4]);
        // The empty value is one, whatever it would be filled with.
        assert_eq!(interner.number(&[]), 0);
        assert_eq!(interner.len(), 1 + 19 * 251);
        for i in 0..20_000_u32 {
            assert_eq!(interner.number(&vec![(i % 251) as u8; (i % 1000) as usize % 20]), numbers[i as usize]);
        }
        let Values::Variable { offsets, .. } = interner.into_values(None) else { panic!() };
        assert_eq!(offsets.len(), 2 + 19 * 251);
    }

    #[test]
    fn values_that_differ_in_trailing_zeros_are_not_equal() {
        let mut interner = Interner::new();
        assert_eq!([&[][..], &[0], &[0, 0], &[0; 8], &[0; 9]].map(|value| interner.number(value)), [0, 1, 2, 3, 4]);
        let mut fixed = Interner::new();
        assert_eq!([1_u16, 2, 1].map(|value| fixed.number(&value.to_le_bytes())), [0, 1, 0]);
        assert_eq!(fixed.into_values(Some(2)), Values::Fixed { byte_width: 2, bytes: vec![1, 0, 2, 0] });
    }
}
