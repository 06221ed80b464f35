//! What an adapter wants served over HTTP.

use axum::Router;

/// A router of an adapter, and the path at which it is answered. Who listens where is not the adapter's
/// business: several may share a port.
#[derive(Debug)]
pub struct HttpIntake {
    /// Without slashes at its ends; empty for the root.
    pub path: String,
    pub router: Router,
}

impl HttpIntake {
    /// At the path of a public address, such as a platform is told to call.
    pub fn at_url(url: &str, router: Router) -> Self {
        let after_host = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = after_host.split_once('/').map_or("", |(_, path)| path);
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Self {
            path: path.trim_matches('/').to_owned(),
            router,
        }
    }

    /// The router, answered at its path and at no other.
    pub fn mounted(self) -> Router {
        match self.path.as_str() {
            "" => self.router,
            path => {
                // A brace alone would be read as a pattern.
                let literal = path.replace('{', "{{").replace('}', "}}");
                Router::new().nest(&format!("/{literal}"), self.router)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_that_of_the_address() {
        for (url, path) in [
            ("https://bot.example", ""),
            ("https://bot.example/", ""),
            ("https://bot.example/telegram", "telegram"),
            ("https://bot.example/a/b/?x=/c#d", "a/b"),
        ] {
            assert_eq!(HttpIntake::at_url(url, Router::new()).path, path);
        }
    }
}
