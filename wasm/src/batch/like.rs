//! LIKE patterns: `%` for any text, `_` for one character, an escape character before either to mean itself.

/// A pattern, ready to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    items: Vec<Item>,
    shape: Shape,
    ignore_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Char(char),
    One,
    Any,
}

/// Patterns that need no backtracking.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    General,
}

impl Pattern {
    /// Reads a pattern. An escape character at the end means itself.
    pub fn new(text: &str, escape: char, ignore_case: bool) -> Pattern {
        let folded = if ignore_case { text.to_lowercase() } else { text.to_owned() };
        let mut items = Vec::new();
        let mut chars = folded.chars();
        while let Some(c) = chars.next() {
            items.push(match c {
                c if c == escape => Item::Char(chars.next().unwrap_or(c)),
                '%' => Item::Any,
                '_' => Item::One,
                c => Item::Char(c),
            });
        }
        items.dedup_by(|next, previous| *next == Item::Any && *previous == Item::Any);
        let shape = shape(&items);
        Pattern { items, shape, ignore_case }
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        if self.ignore_case { self.matches_folded(&text.to_lowercase()) } else { self.matches_folded(text) }
    }

    fn matches_folded(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Exact(own) => text == own,
            Shape::Prefix(own) => text.starts_with(own.as_str()),
            Shape::Suffix(own) => text.ends_with(own.as_str()),
            Shape::Contains(own) => text.contains(own.as_str()),
            Shape::General => general(&self.items, text),
        }
    }
}

fn shape(items: &[Item]) -> Shape {
    let literal = |items: &[Item]| -> Option<String> {
        items.iter().map(|item| if let Item::Char(c) = item { Some(*c) } else { None }).collect()
    };
    let shape = match items {
        [Item::Any, middle @ .., Item::Any] => literal(middle).map(Shape::Contains),
        [Item::Any, rest @ ..] => literal(rest).map(Shape::Suffix),
        [rest @ .., Item::Any] => literal(rest).map(Shape::Prefix),
        _ => literal(items).map(Shape::Exact),
    };
    shape.unwrap_or(Shape::General)
}

/// Greedy matching that goes back to the last `%` only: at worst pattern length times text length.
fn general(items: &[Item], text: &str) -> bool {
    let mut item = 0;
    let mut rest = text.chars();
    let mut last_any: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let mut ahead = rest.clone();
        match (items.get(item), ahead.next()) {
            (Some(Item::Any), _) => {
                item += 1;
                last_any = Some((item, rest.clone()));
                continue;
            }
            (Some(Item::One), Some(_)) => {
                item += 1;
                rest = ahead;
                continue;
            }
            (Some(Item::Char(own)), Some(c)) if *own == c => {
                item += 1;
                rest = ahead;
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after_any, from)) = &mut last_any else { return false };
        if from.next().is_none() {
            return false;
        }
        item = *after_any;
        rest = from.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern, '\\', false).matches(text)
    }

    #[test]
    fn patterns_match_as_sql_says() {
        let cases = [
            ("apple", "a%", true),
            ("apple", "%le", true),
            ("apple", "%pp%", true),
            ("apple", "_pple", true),
            ("apple", "pple", false),
            ("apple", "a_l%", false),
            ("apple", "a%p%e", true),
            ("apple", "a%p%x", false),
            ("", "%", true),
            ("", "_", false),
            ("", "", true),
            ("50%", "50\\%", true),
            ("500", "50\\%", false),
            ("a_b", "a\\_b", true),
            ("a\\", "a\\", true),
            ("\u{65e5}\u{672c}", "_\u{672c}", true),
            ("ab", "%a_b", false),
            ("aaab", "%a_b", true),
            ("abcabd", "%ab%d", true),
        ];
        for (text, pattern, expected) in cases {
            assert_eq!(like(text, pattern), expected, "{text:?} like {pattern:?}");
        }
    }

    #[test]
    fn case_is_ignored_only_on_request() {
        assert!(!like("Apple", "a%"));
        assert!(Pattern::new("A%_E", '\\', true).matches("aPPLe"));
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = "%a".repeat(60) + "b";
        assert!(!like(&"a".repeat(2_000), &pattern));
    }
}
