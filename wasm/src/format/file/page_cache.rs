//! What an open file keeps of its pages: the oldest go first.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// What an open file keeps at most.
const BUDGET_BYTES: usize = 8 * 1024 * 1024;

/// Column and page.
pub(super) type PageKey = (u32, usize);

/// Pages with what keeping each costs.
pub(super) struct PageCache<T> {
    pages: HashMap<PageKey, (Rc<T>, usize)>,
    oldest: VecDeque<PageKey>,
    cost_bytes: usize,
}

impl<T> Default for PageCache<T> {
    fn default() -> PageCache<T> {
        PageCache { pages: HashMap::new(), oldest: VecDeque::new(), cost_bytes: 0 }
    }
}

impl<T> PageCache<T> {
    pub(super) fn get(&self, key: PageKey) -> Option<Rc<T>> {
        self.pages.get(&key).map(|(page, _)| page.clone())
    }

    /// Keeps a page, unless it is kept already or larger than everything may be.
    pub(super) fn put(&mut self, key: PageKey, page: Rc<T>, cost_bytes: usize) {
        if cost_bytes > BUDGET_BYTES || self.pages.contains_key(&key) {
            return;
        }
        self.pages.insert(key, (page, cost_bytes));
        self.oldest.push_back(key);
        self.cost_bytes += cost_bytes;
        while self.cost_bytes > BUDGET_BYTES {
            let Some((_, cost)) = self.oldest.pop_front().and_then(|key| self.pages.remove(&key)) else { break };
            self.cost_bytes = self.cost_bytes.saturating_sub(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pages_go_when_the_budget_is_used_up() {
        let mut cache = PageCache::default();
        for page in 0..5 {
            cache.put((7, page), Rc::new(page), BUDGET_BYTES / 4);
        }
        assert_eq!(
            (0..5).map(|page| cache.get((7, page)).is_some()).collect::<Vec<_>>(),
            [false, true, true, true, true]
        );
        cache.put((0, 0), Rc::new(9), BUDGET_BYTES + 1);
        assert!(cache.get((0, 0)).is_none() && cache.get((7, 1)).is_some());
        cache.put((0, 1), Rc::new(9), BUDGET_BYTES);
        assert_eq!((cache.get((0, 1)).as_deref(), cache.pages.len(), cache.cost_bytes), (Some(&9), 1, BUDGET_BYTES));
    }
}
