//! "Did you mean": the candidate that a misspelt name is nearest to.

/// The candidate with the smallest edit distance to `name`, if it is near enough to be a slip: a third of the letters, ignoring case.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names come from callers and from files; a long one is no slip of the pen, and the distance costs its square.
    const MAX_CHARS: usize = 64;
    let wanted: Vec<char> = name.to_lowercase().chars().take(MAX_CHARS + 1).collect();
    if wanted.is_empty() || wanted.len() > MAX_CHARS {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters: Vec<char> = candidate.to_lowercase().chars().take(MAX_CHARS + 1).collect();
            let limit = wanted.len().max(letters.len()).div_ceil(3);
            let distance = edit_distance(&wanted, &letters);
            (letters.len() <= MAX_CHARS && distance <= limit && distance < wanted.len())
                .then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The end of a message about an unknown column: the nearest one, or those that there are.
pub fn columns_hint(name: &str, columns: &[&str]) -> String {
    const SHOWN: usize = 12;
    if let Some(nearest) = closest(name, columns.iter().copied()) {
        return format!("; did you mean \"{nearest}\"?");
    }
    let more = if columns.len() > SHOWN { ", ..." } else { "" };
    match columns.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        names => format!("; there are {names}{more}"),
    }
}

pub fn edit_distance(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let names = ["id", "vector", "price", "Category"];
        assert_eq!(closest("vectr", names), Some("vector"));
        assert_eq!(closest("category", names), Some("Category"));
        assert_eq!(closest("pirce", names), Some("price"));
        assert_eq!(closest("embedding", names), None);
        assert_eq!(closest("x", names), None);
        assert_eq!(closest("", names), None);
    }

    #[test]
    fn a_stranger_is_told_the_first_of_the_columns() {
        assert_eq!(columns_hint("pirce", &["id", "price"]), "; did you mean \"price\"?");
        assert_eq!(columns_hint("x", &["id", "price"]), "; there are id, price");
        assert_eq!(columns_hint("x", &[]), "");
        let many = columns_hint("x", &["column"; 13]);
        assert!(many.ends_with("column, ...") && many.matches("column").count() == 12, "{many}");
    }

    #[test]
    fn distances_are_those_of_single_letter_edits() {
        let distance = |a: &str, b: &str| edit_distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
