//! What a server says in `WWW-Authenticate` when it wants a login.

use serde::{Deserialize, Serialize};

use crate::scope::ScopeSet;

/// Of all such headers of one answer, what is looked at.
const MOST_BYTES: usize = 8 * 1024;
const LONGEST_ADDRESS: usize = 2048;

/// A server's wish for a login, or for a better one. Untrusted: it only suggests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthChallenge {
    /// Where the server describes who protects it.
    pub(crate) resource_metadata: Option<String>,
    pub(crate) scope: Option<ScopeSet>,
    /// Whether there is a login that does not cover what was asked for.
    pub(crate) is_insufficient: bool,
}

impl AuthChallenge {
    /// The first challenge for a bearer token among the headers of an answer.
    pub fn read<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut left = MOST_BYTES;
        headers.into_iter().find_map(|header| {
            let header = header.get(..header.len().min(left))?;
            left -= header.len();
            Self::in_header(header)
        })
    }

    /// Whether the server wants more scopes than the login has.
    pub fn is_insufficient(&self) -> bool {
        self.is_insufficient
    }

    /// The scopes it names, for people.
    pub fn scope(&self) -> Option<String> {
        self.scope.as_ref().map(ScopeSet::as_text)
    }

    fn in_header(header: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut is_bearer = false;
        for piece in pieces(header) {
            match piece {
                HeaderPiece::Scheme(scheme) => {
                    if found.is_some() {
                        break;
                    }
                    is_bearer = scheme.eq_ignore_ascii_case("bearer");
                    found = is_bearer.then(Self::default);
                }
                HeaderPiece::Parameter(name, value) if is_bearer => {
                    found.get_or_insert_default().take(&name, &value);
                }
                HeaderPiece::Parameter(..) => {}
            }
        }
        found
    }

    fn take(&mut self, name: &str, value: &str) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" if value.len() <= LONGEST_ADDRESS => {
                self.resource_metadata = Some(value.to_owned());
            }
            "scope" => {
                self.scope = Some(ScopeSet::parse(value)).filter(|scope| !scope.is_empty());
            }
            "error" => self.is_insufficient = value == "insufficient_scope",
            _ => {}
        }
    }
}

#[derive(Debug, PartialEq)]
enum HeaderPiece {
    Scheme(String),
    Parameter(String, String),
}

/// Schemes and parameters in their order. `Scheme name=value, name="value", Other …`.
fn pieces(header: &str) -> Vec<HeaderPiece> {
    let mut pieces = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            // An equals sign without a name: skipped, so that every round takes something away.
            match after.strip_prefix('=') {
                Some(after) => {
                    rest = after;
                    continue;
                }
                None => return pieces,
            }
        }
        let spaced = after.trim_start_matches([' ', '\t']);
        match spaced.strip_prefix('=') {
            Some(value) => {
                let (value, after) = parameter(value.trim_start_matches([' ', '\t']));
                pieces.push(HeaderPiece::Parameter(word.to_owned(), value));
                rest = after;
            }
            None => {
                pieces.push(HeaderPiece::Scheme(word.to_owned()));
                rest = after;
            }
        }
    }
}

/// A value, in quotes or bare, and what follows it.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, letter) in quoted.char_indices() {
        match letter {
            _ if is_escaped => {
                value.push(letter);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bearer_challenge_is_found_among_others() {
        let header = r#"Basic realm="a, Bearer scope=\"x\"", Bearer error="insufficient_scope", scope="files:read  files:write" , resource_metadata = "https://mcp.test/.well-known/x", DPoP algs="ES256""#;
        let challenge = AuthChallenge::read([header]).expect("there is one");
        assert!(challenge.is_insufficient());
        assert_eq!(challenge.scope().as_deref(), Some("files:read files:write"));
        assert_eq!(
            challenge.resource_metadata.as_deref(),
            Some("https://mcp.test/.well-known/x")
        );
        let bare = AuthChallenge::read(["Negotiate", "bearer scope=one"]).expect("there is one");
        assert_eq!(bare.scope().as_deref(), Some("one"));
        assert_eq!(
            AuthChallenge::read(["Bearer"]),
            Some(AuthChallenge::default())
        );
        assert_eq!(AuthChallenge::read(["Basic realm=x", "="]), None);
    }

    proptest! {
        #[test]
        fn any_header_is_read_to_its_end(header in "[a-zA-Z =,\"\\\\\t\u{e4}]{0,200}") {
            let _ = AuthChallenge::read([header.as_str(), &format!("Bearer {header}")]);
        }
    }
}
