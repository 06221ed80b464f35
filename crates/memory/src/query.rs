//! What somebody looks for in what was said: words, phrases, `OR`, `NOT` and beginnings (`deploy*`).

/// Alternatives, of which one has to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookBackQuery(Vec<QueryAlternative>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct QueryAlternative {
    wanted: Vec<QueryTerm>,
    unwanted: Vec<QueryTerm>,
}

/// Words that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueryTerm {
    words: Vec<String>,
    /// Whether the last word is only a beginning.
    prefix: bool,
}

/// Of a query; the rest is left out.
const MOST_TERMS: usize = 32;
const LONGEST_QUERY: usize = 1000;

impl LookBackQuery {
    /// `None` where there is nothing to look for.
    pub fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().take(LONGEST_QUERY).collect();
        let mut alternatives = vec![QueryAlternative::default()];
        let mut negated = false;
        for (piece, quoted) in pieces(&text).into_iter().take(MOST_TERMS) {
            match piece.as_str() {
                "OR" if !quoted => alternatives.push(QueryAlternative::default()),
                "AND" if !quoted => {}
                "NOT" if !quoted => negated = true,
                _ => {
                    let prefix = piece.ends_with('*');
                    let words = words(&piece);
                    let last = alternatives.last_mut();
                    if let Some(last) = last.filter(|_| !words.is_empty()) {
                        let list = match std::mem::take(&mut negated) {
                            true => &mut last.unwanted,
                            false => &mut last.wanted,
                        };
                        list.push(QueryTerm { words, prefix });
                    }
                }
            }
        }
        alternatives.retain(|one| !one.wanted.is_empty());
        (!alternatives.is_empty()).then_some(Self(alternatives))
    }

    /// How often a text has what is looked for; nothing where it does not fit.
    pub fn matches(&self, text: &str) -> Option<usize> {
        let words = words(text);
        let fits = self.0.iter().filter_map(|alternative| {
            let has = |term: &QueryTerm| term.positions(&words).count();
            if alternative.unwanted.iter().any(|term| has(term) > 0) {
                return None;
            }
            let mut sum = 0;
            for term in &alternative.wanted {
                sum += Some(has(term)).filter(|count| *count > 0)?;
            }
            Some(sum)
        });
        fits.max()
    }

    /// A part of the text around the first word that is looked for.
    pub fn excerpt(&self, text: &str, most: usize) -> String {
        let folded = text.to_lowercase();
        let wanted = self.0.iter().flat_map(|one| &one.wanted);
        let at = wanted
            .filter_map(|term| folded.find(term.words.first()?.as_str()))
            .min()
            .unwrap_or(0);
        // Folding may change lengths; a character near it is near enough.
        let before = folded.get(..at).map_or(0, |before| before.chars().count());
        let start = before.saturating_sub(most / 3);
        let mut excerpt: String = text.chars().skip(start).take(most).collect();
        if start > 0 {
            excerpt.insert(0, '…');
        }
        if text.chars().count() > start + most {
            excerpt.push('…');
        }
        excerpt
    }
}

impl QueryTerm {
    fn positions(&self, words: &[String]) -> impl Iterator<Item = usize> {
        let windows = words.windows(self.words.len()).enumerate();
        let fits = |window: &[String]| {
            let last = self.words.len() - 1;
            window
                .iter()
                .zip(&self.words)
                .enumerate()
                .all(|(at, (word, wanted))| {
                    word == wanted
                        || (self.prefix && at == last && word.starts_with(wanted.as_str()))
                })
        };
        windows
            .filter(move |(_, window)| fits(window))
            .map(|(at, _)| at)
    }
}

/// Words as they are written, and phrases between quotes.
fn pieces(text: &str) -> Vec<(String, bool)> {
    let mut pieces = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 {
            pieces.push((part.to_owned(), true));
        } else {
            let words = part.split_whitespace();
            pieces.extend(words.map(|word| (word.to_owned(), false)));
        }
    }
    pieces
}

fn words(text: &str) -> Vec<String> {
    let split = text.split(|c: char| !c.is_alphanumeric());
    let words = split.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_phrases_alternatives_and_beginnings_are_found() {
        let text = "We fixed the Docker networking with a Bridge; docker is fine. Größe: ÄPFEL";
        for (query, count) in [
            ("docker bridge", Some(3)),
            ("\"docker networking\"", Some(1)),
            ("\"networking docker\"", None),
            ("podman OR bridge", Some(1)),
            ("docker NOT bridge", None),
            ("docker NOT podman", Some(2)),
            ("net*", Some(1)),
            ("net", None),
            ("äpfel", Some(1)),
            ("docker-networking", Some(1)),
        ] {
            let parsed = LookBackQuery::parse(query).unwrap();
            assert_eq!(parsed.matches(text), count, "{query}");
        }
        for nothing in ["", "  ", "\"\"", "OR", "NOT x", "***", "%"] {
            assert_eq!(LookBackQuery::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn an_excerpt_is_short_and_shows_what_was_found() {
        let query = LookBackQuery::parse("needle").unwrap();
        let text = format!("{}needle{}", "İä ".repeat(500), " ö".repeat(500));
        let excerpt = query.excerpt(&text, 60);
        assert!(excerpt.chars().count() <= 62, "{excerpt}");
        assert_eq!(query.excerpt("a needle", 60), "a needle");
    }
}
