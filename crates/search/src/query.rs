//! What is looked for.

/// Where to look, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// A file or a folder, absolute.
    pub path: Vec<u8>,
    pub target: SearchTarget,
    /// Only files whose names fit this.
    pub glob: Option<String>,
    /// How many results are left out, and how many at most follow.
    pub skip: usize,
    pub take: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchTarget {
    /// What files hold: a regular expression, within a line.
    Content {
        pattern: String,
        shown: ShownMatches,
        /// Lines before and after each match.
        context: usize,
    },
    /// What files are called: a glob.
    Names(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownMatches {
    Lines,
    Files,
    Counts,
}

impl SearchQuery {
    /// As words of a command line. A NUL byte in one of them makes a command that cannot start.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let (kind, pattern, context) = match &self.target {
            SearchTarget::Content {
                pattern,
                shown,
                context,
            } => (shown.word(), pattern, *context),
            SearchTarget::Names(glob) => ("names", glob, 0),
        };
        vec![
            kind.into(),
            self.path.clone(),
            pattern.clone().into_bytes(),
            self.glob.clone().unwrap_or_default().into_bytes(),
            self.skip.to_string().into_bytes(),
            self.take.to_string().into_bytes(),
            context.to_string().into_bytes(),
        ]
    }

    pub fn read(words: &[Vec<u8>]) -> Option<Self> {
        let [kind, path, pattern, glob, skip, take, context] = words else {
            return None;
        };
        let text = |word: &Vec<u8>| String::from_utf8(word.clone()).ok();
        let number = |word: &Vec<u8>| text(word)?.parse::<usize>().ok();
        let pattern = text(pattern)?;
        let target = match kind.as_slice() {
            b"names" => SearchTarget::Names(pattern),
            kind => SearchTarget::Content {
                pattern,
                shown: ShownMatches::ALL
                    .into_iter()
                    .find(|shown| shown.word().as_bytes() == kind)?,
                context: number(context)?,
            },
        };
        Some(Self {
            path: path.clone(),
            target,
            glob: Some(text(glob)?).filter(|glob| !glob.is_empty()),
            skip: number(skip)?,
            take: number(take)?,
        })
    }
}

impl ShownMatches {
    const ALL: [Self; 3] = [Self::Lines, Self::Files, Self::Counts];

    fn word(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Files => "files",
            Self::Counts => "counts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_was_asked() {
        let names = SearchQuery {
            path: b"/a\nb".to_vec(),
            target: SearchTarget::Names("*.rs".to_owned()),
            glob: None,
            skip: 0,
            take: 50,
        };
        let lines = SearchQuery {
            target: SearchTarget::Content {
                pattern: "--flag (x)".to_owned(),
                shown: ShownMatches::Counts,
                context: 2,
            },
            glob: Some("*.py".to_owned()),
            ..names.clone()
        };
        for query in [names, lines] {
            assert_eq!(SearchQuery::read(&query.words()), Some(query));
        }
        assert_eq!(SearchQuery::read(&[b"names".to_vec()]), None);
    }
}
