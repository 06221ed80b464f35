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
                // With and without a slash at its end: the platform calls the address as it was written.
                Router::new()
                    // What an earlier axum read as a pattern is a letter like any other.
                    .without_v07_checks()
                    .nest(&format!("/{literal}/"), self.router.clone())
                    .nest(&format!("/{literal}"), self.router)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_mounted_with_and_without_a_slash_at_its_end() {
        // A path that is there twice would panic here, when it is mounted.
        let router = || Router::new().route("/", axum::routing::post(|| async {}));
        for url in [
            "https://bot.example/a/b/",
            "https://bot.example/{a}/:b",
            "https://bot.example",
        ] {
            let _ = HttpIntake::at_url(url, router()).mounted();
        }
    }

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
