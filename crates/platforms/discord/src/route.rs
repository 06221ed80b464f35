//! One request of the HTTP API, without its body.

use std::fmt::{self, Display};

use reqwest::Method;

/// A method and a path. The path of an answer to an interaction holds a token, so it is not shown.
pub(crate) struct ApiRoute {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) key: RouteKey,
}

/// What requests of one kind are counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    pub(crate) method: Method,
    pub(crate) template: &'static str,
    /// The channel, webhook or interaction: Discord counts for each apart.
    pub(crate) major: String,
}

impl RouteKey {
    /// Answers to interactions do not count towards what a bot may ask altogether, and are not held by it.
    pub(crate) fn answers_interaction(&self) -> bool {
        ["/interactions/", "/webhooks/"]
            .iter()
            .any(|begin| self.template.starts_with(begin))
    }
}

impl ApiRoute {
    /// The ids are put where the braces are; the first of them is the one that is counted for.
    pub(crate) fn new(method: Method, template: &'static str, ids: &[&dyn Display]) -> Self {
        let mut path = String::new();
        let mut ids_left = ids.iter();
        for (index, piece) in template.split("{}").enumerate() {
            if index > 0
                && let Some(id) = ids_left.next()
            {
                path.push_str(&id.to_string());
            }
            path.push_str(piece);
        }
        Self {
            path,
            key: RouteKey {
                method: method.clone(),
                template,
                major: ids.first().map(ToString::to_string).unwrap_or_default(),
            },
            method,
        }
    }

    pub(crate) fn get(template: &'static str, ids: &[&dyn Display]) -> Self {
        Self::new(Method::GET, template, ids)
    }

    pub(crate) fn post(template: &'static str, ids: &[&dyn Display]) -> Self {
        Self::new(Method::POST, template, ids)
    }

    pub(crate) fn patch(template: &'static str, ids: &[&dyn Display]) -> Self {
        Self::new(Method::PATCH, template, ids)
    }

    pub(crate) fn put(template: &'static str, ids: &[&dyn Display]) -> Self {
        Self::new(Method::PUT, template, ids)
    }

    pub(crate) fn delete(template: &'static str, ids: &[&dyn Display]) -> Self {
        Self::new(Method::DELETE, template, ids)
    }

    /// With a question behind the path.
    pub(crate) fn asking(mut self, query: &str) -> Self {
        self.path.push('?');
        self.path.push_str(query);
        self
    }
}

impl fmt::Debug for ApiRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key.method, self.key.template)
    }
}
