//! The paths of a host that a credential goes to.
//!
//! A key for a model is good for more than asking the model: files, organisations, other people's bills. Where
//! an operator names paths, a request to any other path of that host is refused. It does not go on without the
//! credential: with a key that somebody else slipped in, the same host would be a way to carry files out.

use super::InvalidCredential;

/// Where on its host a credential is put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CredentialPaths {
    #[default]
    Everywhere,
    /// For these requests.
    Only(Vec<AllowedRequest>),
}

/// One entry of `paths`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowedRequest {
    /// `/v1/messages`: there and below, by any method.
    Below(String),
    /// `POST /v1/messages`: there alone, by this method.
    Exact { method: String, path: String },
    /// `GET /v1/models/*`: one segment below, by this method.
    OneBelow { method: String, path: String },
}

/// More than any provider's interface has.
const MOST_PATHS: usize = 32;
const LONGEST_PATH: usize = 256;

impl CredentialPaths {
    /// Everywhere where no path is named.
    pub(super) fn parse(paths: &[String]) -> Result<Self, InvalidCredential> {
        if paths.is_empty() {
            return Ok(Self::Everywhere);
        }
        if paths.len() > MOST_PATHS {
            return Err(InvalidCredential::TooManyPaths { count: paths.len() });
        }
        let paths = paths.iter().map(|path| AllowedRequest::parse(path));
        Ok(Self::Only(paths.collect::<Result<_, _>>()?))
    }

    pub(crate) fn are_limited(&self) -> bool {
        *self != Self::Everywhere
    }

    /// Whether a request for this path, with its query, gets the credential. A path that a server may read as
    /// another one does not, nor one that carries a key in its query: that would be somebody else's.
    pub(crate) fn cover(&self, method: &str, target: &str) -> bool {
        let Self::Only(allowed) = self else {
            return true;
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        is_plain(path)
            && !carries_key(query)
            && allowed.iter().any(|each| each.covers(method, path))
    }
}

impl AllowedRequest {
    fn parse(written: &str) -> Result<Self, InvalidCredential> {
        let Some((method, path)) = written.split_once(' ') else {
            return checked(written).map(Self::Below);
        };
        let is_method =
            (3..=7).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_method {
            return Err(InvalidCredential::Path {
                path: written.chars().take(80).collect(),
            });
        }
        let method = method.to_owned();
        Ok(match path.strip_suffix("/*") {
            Some(above) => Self::OneBelow {
                method,
                path: checked(above)?,
            },
            None => Self::Exact {
                method,
                path: checked(path)?,
            },
        })
    }

    fn covers(&self, asked: &str, path: &str) -> bool {
        match self {
            Self::Below(allowed) => is_below(path, allowed),
            Self::Exact {
                method,
                path: allowed,
            } => asked == method && path == allowed,
            Self::OneBelow {
                method,
                path: allowed,
            } => {
                let rest = path.strip_prefix(allowed.as_str());
                let segment = rest.and_then(|rest| rest.strip_prefix('/'));
                let is_one = |segment: &str| !segment.is_empty() && !segment.contains('/');
                asked == method && segment.is_some_and(is_one)
            }
        }
    }
}

/// Whether a query has a field by which interfaces take keys. One in an odd spelling is a doubt.
fn carries_key(query: &str) -> bool {
    const KEYS: [&str; 8] = [
        "key",
        "api_key",
        "apikey",
        "api-key",
        "access_token",
        "auth_token",
        "token",
        "authorization",
    ];
    query.split(['&', ';']).any(|field| {
        let name = field.split('=').next().unwrap_or_default();
        name.contains('%') || KEYS.iter().any(|key| name.eq_ignore_ascii_case(key))
    })
}

fn checked(path: &str) -> Result<String, InvalidCredential> {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let fits = trimmed.len() > 1 && trimmed.len() <= LONGEST_PATH;
    let is_spelled_out = !trimmed.contains(['?', '#', '*', '%', ';']);
    match trimmed.starts_with('/') && fits && is_spelled_out && is_plain(trimmed) {
        true => Ok(trimmed.to_owned()),
        false => Err(InvalidCredential::Path {
            path: path.chars().take(80).collect(),
        }),
    }
}

fn is_below(path: &str, allowed: &str) -> bool {
    let rest = path.strip_prefix(allowed);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether every server reads the path as it is written: nothing in it is decoded, folded or climbed.
fn is_plain(path: &str) -> bool {
    const FOLDED: [&str; 6] = ["%2e", "%2f", "%5c", "%25", "%3b", "%00"];
    let lower = path.to_ascii_lowercase();
    let climbs = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        matches!(name, "." | "..")
    };
    path.bytes().all(|byte| byte.is_ascii_graphic())
        && !path.contains("//")
        && !path.contains('\\')
        && !FOLDED.iter().any(|folded| lower.contains(folded))
        && !path.split('/').any(climbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(written: &[&str]) -> Result<CredentialPaths, InvalidCredential> {
        let written: Vec<String> = written.iter().map(|&path| path.to_owned()).collect();
        CredentialPaths::parse(&written)
    }

    #[test]
    fn a_path_stands_for_itself_and_what_is_below() {
        let limited = paths(&["/v1/messages", "/v1beta/models/"]).unwrap();
        for path in [
            "/v1/messages",
            "/v1/messages?beta=true",
            "/v1/messages/count_tokens",
            "/v1/messages/",
            "/v1beta/models/gemini-pro:streamGenerateContent?alt=sse",
        ] {
            assert!(limited.cover("POST", path), "{path}");
        }
        for path in [
            "/",
            "/v1",
            "/v1/files",
            "/v1/messagesandmore",
            "/V1/MESSAGES",
            "/x/v1/messages",
            "/v1?/v1/messages",
        ] {
            assert!(!limited.cover("POST", path), "{path}");
        }
    }

    #[test]
    fn a_path_with_a_method_stands_for_itself_alone() {
        let limited = paths(&["POST /v1/messages", "GET /v1/models/*"]).unwrap();
        for (method, path) in [
            ("POST", "/v1/messages"),
            ("POST", "/v1/messages?beta=true"),
            ("GET", "/v1/models/one?limit=3"),
        ] {
            assert!(limited.cover(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/"),
            ("POST", "/v1/messages/batches"),
            ("DELETE", "/v1/models/one"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/"),
            ("GET", "/v1/models/one/two"),
            ("POST", "/v1/messages?key=somebody-elses"),
            ("POST", "/v1/messages?x=1&API_KEY=somebody-elses"),
            ("POST", "/v1/messages?k%65y=somebody-elses"),
        ] {
            assert!(!limited.cover(method, path), "{method} {path}");
        }
        for wrong in [
            "post /v1/messages",
            "POST v1",
            "POST  /v1",
            "POST /v1/*/x",
            "POST /*",
            "P /v1",
        ] {
            assert!(paths(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_path_that_a_server_may_read_otherwise_is_outside() {
        let limited = paths(&["/v1/messages"]).unwrap();
        for path in [
            "/v1/messages/../files",
            "/v1/messages/%2e%2e/files",
            "/v1/messages/%2E%2e/files",
            "/v1/messages/..;/files",
            "/v1/messages/..%2ffiles",
            "/v1/messages/..%5cfiles",
            "/v1/messages/%252e%252e/files",
            "/v1/messages//../files",
            "/v1/messages\\..\\files",
            "/v1/messages/.",
            "/v1/messages%00",
            "/v1/messages/\u{ff0e}\u{ff0e}/files",
        ] {
            assert!(!limited.cover("POST", path), "{path}");
        }
    }

    #[test]
    fn without_paths_it_goes_everywhere() {
        let everywhere = paths(&[]).unwrap();
        assert!(everywhere.cover("GET", "/") && everywhere.cover("GET", "/a/../b?key=x"));
    }

    #[test]
    fn what_is_no_path_is_refused_when_it_is_written() {
        for wrong in [
            "", "/", "v1", "/v1/*", "/v1?x", "/a//b", "/a/../b", "/a b", "/a%20b",
        ] {
            assert!(paths(&[wrong]).is_err(), "{wrong:?}");
        }
        assert!(paths(&["/a"; MOST_PATHS + 1]).is_err());
        assert!(paths(&[&format!("/{}", "a".repeat(LONGEST_PATH))]).is_err());
    }
}
