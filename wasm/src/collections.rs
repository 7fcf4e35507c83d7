//! Maps and sets that are sorted vectors.
//!
//! A map here is collected at once, grows in the order of its keys, or has a few dozen keys: then a vector and a binary search are as fast
//! as a B-tree. Each pair of types that a B-tree is used with adds 1.5 KB of brotli to the engine, and a vector a tenth of that. An
//! insertion in the middle moves what stands behind it: what grows in no order, and to thousands, is a hash map.

use std::borrow::Borrow;
use std::cmp::Ordering;

/// Values by key, in the order of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> SortedMap<K, V> {
    #[must_use]
    pub const fn new() -> SortedMap<K, V> {
        SortedMap { entries: Vec::new() }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.entries.iter())
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.entries.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Keeps the entries for which `keeps` holds.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keeps(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        match self.entries.last() {
            // In order is how most maps are built.
            Some((last, _)) if last.borrow() < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|(at, _)| at.borrow().cmp(key)),
        }
    }

    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &self.entries[at].1)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &mut self.entries[at].1)
    }

    /// Sets the value of a key; gives the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| self.entries.remove(at).1)
    }

    /// The value of a key; one that `make` gives where there is none yet.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.place(&key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key, make()));
                at
            }
        };
        &mut self.entries[at].1
    }

    /// The value of a key; the default where there is none yet.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap::new()
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// Entries in any order, however many, are put in order once; of a key that stands twice the later value holds.
impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries: Vec<(K, V)> = entries.into_iter().collect();
        if entries.is_sorted_by(|(before, _), (after, _)| before < after) {
            return SortedMap { entries };
        }
        let order = order(entries.len(), &|a, b| entries[a].0.cmp(&entries[b].0));
        let mut entries: Vec<Option<(K, V)>> = entries.into_iter().map(Some).collect();
        let mut map = SortedMap::new();
        for (key, value) in order.into_iter().filter_map(|at| entries[at].take()) {
            map.insert(key, value);
        }
        map
    }
}

/// The places of things in their order, of equal ones the earlier first. Sorting is here once, and not for every type of entry.
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_unstable_by(|a, b| compare(*a, *b).then(a.cmp(b)));
    order
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// The entries of a [`SortedMap`], in order.
#[derive(Debug, Clone)]
pub struct Iter<'a, K, V>(std::slice::Iter<'a, (K, V)>);

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// Keys without values, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedSet<K> {
    keys: SortedMap<K, ()>,
}

impl<K> SortedSet<K> {
    #[must_use]
    pub const fn new() -> SortedSet<K> {
        SortedSet { keys: SortedMap::new() }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.keys.keys()
    }

    #[must_use]
    pub fn first(&self) -> Option<&K> {
        self.iter().next()
    }
}

impl<K: Ord> SortedSet<K> {
    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.contains_key(key)
    }

    /// Adds a key; whether it is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.keys.insert(key, ()).is_none()
    }

    /// Takes a key away; whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.remove(key).is_some()
    }
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        SortedSet::new()
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<K: Ord> FromIterator<K> for SortedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        SortedSet { keys: keys.into_iter().map(|key| (key, ())).collect() }
    }
}

impl<K: Ord, const N: usize> From<[K; N]> for SortedSet<K> {
    fn from(keys: [K; N]) -> Self {
        keys.into_iter().collect()
    }
}

impl<K> IntoIterator for SortedSet<K> {
    type Item = K;
    type IntoIter = std::iter::Map<std::vec::IntoIter<(K, ())>, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.into_iter().map(|(key, ())| key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_does_what_a_b_tree_does(steps in prop::collection::vec((0_u8..4, 0_u8..20, 0_u32..100), 0..80)) {
            let (mut ours, mut theirs) = (SortedMap::new(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(ours.insert(key, value), theirs.insert(key, value)),
                    1 => prop_assert_eq!(ours.remove(&key), theirs.remove(&key)),
                    2 => *ours.or_default(key) += value,
                    _ => ours.retain(|at, _| *at != key),
                }
                match step {
                    2 => *theirs.entry(key).or_default() += value,
                    3 => theirs.retain(|at, _| *at != key),
                    _ => {}
                }
                prop_assert_eq!(ours.get(&key), theirs.get(&key));
                prop_assert_eq!(ours.iter().collect::<Vec<_>>(), theirs.iter().collect::<Vec<_>>());
            }
        }
    }

    proptest! {
        #[test]
        fn entries_in_any_order_are_collected_as_by_a_b_tree(entries in prop::collection::vec((0_u8..40, 0_u32..100), 0..80)) {
            let ours: SortedMap<u8, u32> = entries.iter().copied().collect();
            let theirs: BTreeMap<u8, u32> = entries.into_iter().collect();
            prop_assert_eq!(ours.into_iter().collect::<Vec<_>>(), theirs.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_set_holds_a_key_once_and_in_order() {
        let mut set = SortedSet::from(["b", "a", "b"]);
        assert_eq!(set.iter().copied().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!set.insert("a") && set.remove("a") && !set.contains("a"));
        assert_eq!((set.first(), set.len()), (Some(&"b"), 1));
    }
}
