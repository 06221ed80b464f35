//! The calls to the provider's API that a sandbox's life takes.

use reqwest::Url;

use super::shapes::{CreateSandbox, DaytonaSandbox, ListedPage, ToolboxUrl};
use super::trouble::DaytonaTrouble;
use super::wire::{ApiRequest, HttpWire};

/// A hundred sandboxes on each; more than anybody's quota.
const MOST_SANDBOX_PAGES: usize = 100;
const PAGE: &str = "100";

#[derive(Debug)]
pub(crate) struct DaytonaApi {
    pub(crate) wire: HttpWire,
    pub(crate) base: Url,
}

impl DaytonaApi {
    pub(crate) async fn create(
        &self,
        wanted: &CreateSandbox,
    ) -> Result<DaytonaSandbox, DaytonaTrouble> {
        // The one request that may not be repeated blindly: carried out twice, it makes two
        // sandboxes to be paid for.
        let ask = ApiRequest::json(self.url(&["sandbox"]), wanted)?.once();
        self.wire.ask_for(&ask).await
    }

    /// By name or the provider's id.
    pub(crate) async fn look(&self, which: &str) -> Result<DaytonaSandbox, DaytonaTrouble> {
        let ask = ApiRequest::get(self.url(&["sandbox", which]));
        self.wire.ask_for(&ask).await
    }

    pub(crate) async fn start(&self, id: &str) -> Result<(), DaytonaTrouble> {
        let ask = ApiRequest::post(self.url(&["sandbox", id, "start"]));
        self.wire.ask(&ask).await.map(drop)
    }

    pub(crate) async fn stop(&self, id: &str) -> Result<(), DaytonaTrouble> {
        let ask = ApiRequest::post(self.url(&["sandbox", id, "stop"]));
        self.wire.ask(&ask).await.map(drop)
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), DaytonaTrouble> {
        let ask = ApiRequest::delete(self.url(&["sandbox", id]));
        self.wire.ask(&ask).await.map(drop)
    }

    /// Tells the provider that somebody still uses it.
    pub(crate) async fn touch(&self, id: &str) -> Result<(), DaytonaTrouble> {
        let ask = ApiRequest::post(self.url(&["sandbox", id, "last-activity"]));
        self.wire.ask(&ask).await.map(drop)
    }

    pub(crate) async fn list(&self, labels: &str) -> Result<Vec<DaytonaSandbox>, DaytonaTrouble> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_SANDBOX_PAGES {
            let mut url = self.url(&["sandbox"]);
            url.query_pairs_mut()
                .append_pair("labels", labels)
                .append_pair("limit", PAGE);
            if let Some(cursor) = &cursor {
                url.query_pairs_mut().append_pair("cursor", cursor);
            }
            match self.wire.ask_for(&ApiRequest::get(url)).await? {
                ListedPage::All(sandboxes) => return Ok(sandboxes),
                ListedPage::Page { items, next_cursor } => {
                    all.extend(items);
                    cursor = next_cursor.filter(|cursor| !cursor.is_empty());
                }
            }
            if cursor.is_none() {
                return Ok(all);
            }
        }
        Err(DaytonaTrouble::Nonsense {
            why: "the list has no end".to_owned(),
        })
    }

    /// Where the sandbox's toolbox is. The key goes there, so it is as well hidden as here.
    pub(crate) async fn toolbox(&self, sandbox: &DaytonaSandbox) -> Result<Url, DaytonaTrouble> {
        let told = match &sandbox.toolbox_proxy_url {
            Some(url) if !url.is_empty() => url.clone(),
            _ => {
                let ask = ApiRequest::get(self.url(&["sandbox", &sandbox.id, "toolbox-proxy-url"]));
                self.wire.ask_for::<ToolboxUrl>(&ask).await?.url
            }
        };
        let url: Url = told
            .parse()
            .map_err(|error| DaytonaTrouble::nonsense(&error))?;
        let as_hidden = url.scheme() == "https" || url.scheme() == self.base.scheme();
        if !as_hidden || url.cannot_be_a_base() {
            return Err(DaytonaTrouble::Nonsense {
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
    // By segments and not as text: a name with a slash in it would be another path.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}
