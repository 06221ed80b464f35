//! The calls to the provider's API that a sandbox's life takes.

use reqwest::Url;

use super::shapes::{CreateSandbox, Listed, Sandbox, ToolboxUrl};
use super::trouble::Trouble;
use super::wire::{Ask, Wire};

/// A hundred sandboxes on each; more than anybody's quota.
const MOST_PAGES: usize = 100;
const PAGE: &str = "100";

#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) wire: Wire,
    pub(crate) base: Url,
}

impl Service {
    pub(crate) async fn create(&self, wanted: &CreateSandbox) -> Result<Sandbox, Trouble> {
        let ask = Ask::json(self.url(&["sandbox"]), wanted)?.once();
        self.wire.ask_for(&ask).await
    }

    /// By name or the provider's id.
    pub(crate) async fn look(&self, which: &str) -> Result<Sandbox, Trouble> {
        let ask = Ask::get(self.url(&["sandbox", which]));
        self.wire.ask_for(&ask).await
    }

    pub(crate) async fn start(&self, id: &str) -> Result<(), Trouble> {
        let ask = Ask::post(self.url(&["sandbox", id, "start"]));
        self.wire.ask(&ask).await.map(drop)
    }

    pub(crate) async fn stop(&self, id: &str) -> Result<(), Trouble> {
        let ask = Ask::post(self.url(&["sandbox", id, "stop"]));
        self.wire.ask(&ask).await.map(drop)
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), Trouble> {
        let ask = Ask::delete(self.url(&["sandbox", id]));
        self.wire.ask(&ask).await.map(drop)
    }

    /// Tells the provider that somebody still uses it.
    pub(crate) async fn touch(&self, id: &str) -> Result<(), Trouble> {
        let ask = Ask::post(self.url(&["sandbox", id, "last-activity"]));
        self.wire.ask(&ask).await.map(drop)
    }

    pub(crate) async fn list(&self, labels: &str) -> Result<Vec<Sandbox>, Trouble> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut url = self.url(&["sandbox"]);
            url.query_pairs_mut()
                .append_pair("labels", labels)
                .append_pair("limit", PAGE);
            if let Some(cursor) = &cursor {
                url.query_pairs_mut().append_pair("cursor", cursor);
            }
            match self.wire.ask_for(&Ask::get(url)).await? {
                Listed::All(sandboxes) => return Ok(sandboxes),
                Listed::Page { items, next_cursor } => {
                    all.extend(items);
                    cursor = next_cursor.filter(|cursor| !cursor.is_empty());
                }
            }
            if cursor.is_none() {
                return Ok(all);
            }
        }
        Err(Trouble::Nonsense {
            why: "the list has no end".to_owned(),
        })
    }

    /// Where the sandbox's toolbox is. The key goes there, so it is as well hidden as here.
    pub(crate) async fn toolbox(&self, sandbox: &Sandbox) -> Result<Url, Trouble> {
        let told = match &sandbox.toolbox_proxy_url {
            Some(url) if !url.is_empty() => url.clone(),
            _ => {
                let ask = Ask::get(self.url(&["sandbox", &sandbox.id, "toolbox-proxy-url"]));
                self.wire.ask_for::<ToolboxUrl>(&ask).await?.url
            }
        };
        let url: Url = told.parse().map_err(|error| Trouble::nonsense(&error))?;
        let as_hidden = url.scheme() == "https" || url.scheme() == self.base.scheme();
        if !as_hidden || url.cannot_be_a_base() {
            return Err(Trouble::Nonsense {
                why: "the toolbox is where the key may not go".to_owned(),
            });
        }
        Ok(extended(&url, &[&sandbox.id]))
    }

    fn url(&self, segments: &[&str]) -> Url {
        extended(&self.base, segments)
    }
}

pub(crate) fn extended(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}
