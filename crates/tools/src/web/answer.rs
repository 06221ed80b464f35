//! The answer of `web_extract`, with what does not fit put into the workspace.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::extract::PageText;
use crate::ConversationTools;
use crate::files::FileTool;
use crate::toolbox::RawAnswer;

/// Where long pages are put, from where the conversation works.
const FOLDER: &str = "web_pages";
/// Of what fits, the share of the beginning.
const HEAD_PER_CENT: usize = 75;

impl ConversationTools<'_> {
    pub(crate) async fn call_extract(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let web = &self.kit.web;
        let is_secret = |text: &str| self.holds_secret(text);
        let pages = web.pages(arguments, self.workplace, is_secret, stop).await;
        let pages = match pages {
            Ok(pages) => pages,
            Err(error) => {
                return RawAnswer {
                    json: json!({"success": false, "error": error}),
                    failed: true,
                };
            }
        };
        let failed = pages.iter().all(|page| page.outcome.is_err());
        // Several pages share what one answer holds.
        let share = MOST_ANSWER / pages.len().max(1);
        let most = web.page_chars(arguments).min(share);
        let mut results = Vec::new();
        for page in pages {
            results.push(match page.outcome {
                Ok(text) => self.shown_page(&page.url, text, most, stop).await,
                Err(error) => {
                    json!({"url": page.url, "title": "", "content": "", "error": error})
                }
            });
        }
        RawAnswer {
            json: json!({"results": results}),
            failed,
        }
    }

    async fn shown_page(
        &self,
        url: &str,
        page: PageText,
        most: usize,
        stop: &CancellationToken,
    ) -> Value {
        let length = page.text.chars().count();
        let content = match length > most {
            false => page.text,
            true => {
                let kept = self.keep_page(url, &page.text, stop).await;
                shortened(&page.text, length, most, kept.as_deref())
            }
        };
        let mut json = json!({"url": url, "title": page.title, "content": content, "error": null});
        if let Some(moved_to) = page.moved_to {
            json["final_url"] = moved_to.into();
        }
        if page.is_cut {
            json["note"] =
                "The page is longer than what is read of one; this is its beginning.".into();
        }
        json
    }

    /// Puts a page into the workspace; its path, where that could be done.
    async fn keep_page(&self, url: &str, text: &str, stop: &CancellationToken) -> Option<String> {
        let path = format!("{FOLDER}/{}", file_name(url));
        // The file goes into a sandbox, so it holds what the model may be shown and no more.
        let text = self.kit.terminal.redactor().redact(text);
        let mut arguments = Map::new();
        arguments.insert("path".to_owned(), path.clone().into());
        arguments.insert("content".to_owned(), text.into_inner().into());
        let files = &self.kit.files;
        let written = files
            .call(FileTool::Write, &arguments, self.workplace, self.ask, stop)
            .await;
        (!written.failed).then_some(path)
    }
}

/// Characters of all pages of one answer, below what a result may have.
const MOST_ANSWER: usize = 80_000;

fn shortened(text: &str, length: usize, most: usize, kept: Option<&str>) -> String {
    let head = most * HEAD_PER_CENT / 100;
    let tail = most - head;
    let byte_of = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    let (first, last) = (&text[..byte_of(head)], &text[byte_of(length - tail)..]);
    let omitted = length - most;
    let where_to = match kept {
        Some(path) => {
            let line = first.lines().count().max(1);
            format!("all of it is in {path}; the part left out begins near line {line}: read_file")
        }
        None => "the whole page could not be put into the workspace".to_owned(),
    };
    format!("{first}\n\n[… {omitted} characters left out; {where_to} …]\n\n{last}")
}

/// A name that tells the page, and is one of no other.
fn file_name(url: &str) -> String {
    use sha2::{Digest, Sha256};
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let address = url.split("://").last().unwrap_or(url);
    let name: String = address.chars().map(plain).take(60).collect();
    let hash = Sha256::digest(url.as_bytes());
    let hash: String = hash
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{}-{hash}.md", name.trim_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_page_keeps_its_ends_and_says_where_the_rest_is() {
        let text = format!("{}{}", "ä\n".repeat(100), "z".repeat(200));
        let short = shortened(&text, text.chars().count(), 100, Some("web_pages/x.md"));
        assert!(short.starts_with("ä\n") && short.ends_with(&"z".repeat(25)));
        assert!(
            short.contains("300 characters left out; all of it is in web_pages/x.md"),
            "{short}"
        );
    }

    #[test]
    fn a_file_is_named_after_its_page_and_leads_nowhere_else() {
        let name = file_name("https://a.test/../../etc/passwd?x=$(id)");
        assert!(
            name.starts_with("a-test-------etc-passwd-x---id") && name.ends_with(".md"),
            "{name}"
        );
        assert_ne!(file_name("https://a.test/1"), file_name("https://a.test/2"));
        assert!(file_name(&"x".repeat(10_000)).len() < 80);
    }
}
