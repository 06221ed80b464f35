//! Scopes: what a token is good for, in a server's own words.

use serde::{Deserialize, Serialize};

/// Scopes that are asked for at once.
const MOST_SCOPES: usize = 64;
const LONGEST_SCOPE: usize = 200;

/// Scopes without doubles, in the order they were named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ScopeSet(Vec<String>);

impl ScopeSet {
    /// The scopes in a list with spaces between them. What no scope can look like is left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut set = Self::default();
        text.split(' ').for_each(|scope| set.add(scope));
        set
    }

    pub(crate) fn add(&mut self, scope: &str) {
        let is_letter = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let is_scope = (1..=LONGEST_SCOPE).contains(&scope.len()) && scope.bytes().all(is_letter);
        if is_scope && self.0.len() < MOST_SCOPES && !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }

    pub(crate) fn with(mut self, other: &Self) -> Self {
        other.0.iter().for_each(|scope| self.add(scope));
        self
    }

    pub(crate) fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn as_text(&self) -> String {
        self.0.join(" ")
    }
}
