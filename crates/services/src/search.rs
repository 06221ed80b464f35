//! Web search by a provider that the operator chose.

use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;
use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};

use crate::service_client::{ServiceClient, ServiceError, UnusableService, below, bounded};

/// Who is asked, and with what.
#[derive(Clone, Debug)]
pub struct SearchSettings {
    pub provider: SearchProvider,
    /// Where it is.
    pub base_url: String,
    /// SearXNG wants none.
    pub key: Option<Secret>,
    pub proxy: Option<UpstreamProxy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchProvider {
    SearXng,
    Brave,
    Tavily,
    Exa,
}

/// A page that a search found. Every word of it is somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    pub title: String,
    pub url: String,
    pub description: String,
}

/// One configured provider of search.
#[derive(Clone, Debug)]
pub struct SearchService {
    client: ServiceClient,
    url: Url,
    settings: SearchSettings,
}

const PATIENCE: Duration = Duration::from_secs(15);
/// A page of results has some ten kilobytes.
const MOST_BYTES: usize = 2 << 20;
const TITLE_CHARS: usize = 300;
const URL_CHARS: usize = 2000;
const DESCRIPTION_CHARS: usize = 1000;
/// The most that Brave and Tavily give at once.
const MOST_AT_ONCE: usize = 20;

impl SearchProvider {
    pub fn name(self) -> &'static str {
        match self {
            Self::SearXng => "SearXNG",
            Self::Brave => "Brave Search",
            Self::Tavily => "Tavily",
            Self::Exa => "Exa",
        }
    }

    /// Where it is unless the operator says otherwise. SearXNG is nowhere.
    pub fn usual_address(self) -> Option<&'static str> {
        match self {
            Self::SearXng => None,
            Self::Brave => Some("https://api.search.brave.com/res/v1"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Exa => Some("https://api.exa.ai"),
        }
    }

    /// The variable without which it cannot be used.
    pub fn variable(self) -> &'static str {
        match self {
            Self::SearXng => "SEARXNG_URL",
            Self::Brave => "BRAVE_SEARCH_API_KEY",
            Self::Tavily => "TAVILY_API_KEY",
            Self::Exa => "EXA_API_KEY",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Brave => "web/search",
            Self::SearXng | Self::Tavily | Self::Exa => "search",
        }
    }
}

impl SearchService {
    pub fn new(settings: SearchSettings) -> Result<Self, UnusableService> {
        let provider = settings.provider;
        let proxy = settings.proxy.as_ref();
        let (name, variable) = (provider.name(), provider.variable());
        Ok(Self {
            client: ServiceClient::new(name, variable, PATIENCE, MOST_BYTES, proxy)?,
            url: below(&settings.base_url, provider.path())?,
            settings,
        })
    }

    pub fn provider(&self) -> SearchProvider {
        self.settings.provider
    }

    /// At most `limit` pages, the best first.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<FoundPage>, ServiceError> {
        let answer = self.client.json(self.request(query, limit)).await?;
        let found = self
            .found(&answer)
            .ok_or_else(|| self.client.unreadable())?;
        let pages = found.iter().filter_map(|entry| self.page(entry));
        Ok(pages.take(limit).collect())
    }

    fn request(&self, query: &str, limit: usize) -> RequestBuilder {
        let at_once = limit.clamp(1, MOST_AT_ONCE);
        let (http, url) = (self.client.http(), self.url.clone());
        let key = self.settings.key.as_ref().map_or("", Secret::expose);
        match self.settings.provider {
            SearchProvider::SearXng => http
                .get(with_query(
                    url,
                    &[("q", query), ("format", "json"), ("pageno", "1")],
                ))
                .header(ACCEPT, "application/json"),
            SearchProvider::Brave => http
                .get(with_query(
                    url,
                    &[
                        ("q", query),
                        ("count", &at_once.to_string()),
                        // Without tags in the text.
                        ("text_decorations", "false"),
                    ],
                ))
                .header(ACCEPT, "application/json")
                .header("X-Subscription-Token", key),
            SearchProvider::Tavily => http.post(url).bearer_auth(key).json(&json!({
                "query": query,
                "max_results": at_once,
                "include_raw_content": false,
                "include_images": false,
            })),
            SearchProvider::Exa => http.post(url).header("x-api-key", key).json(&json!({
                "query": query,
                "numResults": limit,
                "contents": {"highlights": true},
            })),
        }
    }

    fn found<'a>(&self, answer: &'a Value) -> Option<&'a Vec<Value>> {
        match self.settings.provider {
            // Brave leaves the section out where nothing was found.
            SearchProvider::Brave => match answer.get("web") {
                Some(web) => web.get("results")?.as_array(),
                None => answer.is_object().then_some(const { &Vec::new() }),
            },
            SearchProvider::SearXng | SearchProvider::Tavily | SearchProvider::Exa => {
                answer.get("results")?.as_array()
            }
        }
    }

    /// Nothing where it has no address that can be read.
    fn page(&self, entry: &Value) -> Option<FoundPage> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or("");
        let url = text("url");
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web || url.len() > URL_CHARS {
            return None;
        }
        let description = match self.settings.provider {
            SearchProvider::SearXng | SearchProvider::Tavily => text("content").to_owned(),
            SearchProvider::Brave => text("description").to_owned(),
            SearchProvider::Exa => {
                let highlights = entry.get("highlights").and_then(Value::as_array);
                let highlights = highlights.into_iter().flatten();
                let texts: Vec<_> = highlights.filter_map(Value::as_str).collect();
                texts.join(" ")
            }
        };
        Some(FoundPage {
            title: bounded(text("title"), TITLE_CHARS),
            url: url.to_owned(),
            description: bounded(&description, DESCRIPTION_CHARS),
        })
    }
}

fn with_query(mut url: Url, pairs: &[(&str, &str)]) -> Url {
    url.query_pairs_mut().extend_pairs(pairs);
    url
}
