//! Finds the word that a misspelt word probably means.

use strsim::levenshtein;

/// Returns the candidate nearest to `word` by edit distance, if it is near enough to be a slip of the keyboard.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let limit = (length / 5).clamp(2, 4);
    candidates
        .filter(|c| c.chars().count().abs_diff(length) <= limit)
        .map(|c| (levenshtein(word, c), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Returns the column that a name means: the shortest one with the name and a unit behind it (`makespan_ns` for `makespan`), or the [`nearest`].
pub fn nearest_column<'a>(name: &str, columns: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let with_unit = |c: &&str| c.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
    columns.clone().filter(with_unit).min_by_key(|c| c.len()).or_else(|| nearest(name, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let words = ["topology.kind", "topology.k", "transport.cc"];
        assert_eq!(nearest("topology.knid", words.into_iter()), Some("topology.kind"));
        assert_eq!(nearest("transport.cv", words.into_iter()), Some("transport.cc"));
        assert_eq!(nearest("weather", words.into_iter()), None);
    }
}
