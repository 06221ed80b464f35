//! Every provider's own request and answer.

use hermetic_services::{FoundPage, SearchProvider, SearchService, SearchSettings, ServiceError};
use hermetic_types::Secret;

use crate::origin::Origin;

const ALL: [SearchProvider; 4] = [
    SearchProvider::SearXng,
    SearchProvider::Brave,
    SearchProvider::Tavily,
    SearchProvider::Exa,
];

fn service(provider: SearchProvider, base_url: &str) -> SearchService {
    SearchService::new(SearchSettings {
        provider,
        base_url: base_url.to_owned(),
        key: Some(Secret::new("key-of-the-operator")),
        proxy: None,
    })
    .unwrap()
}

fn found(name: &str) -> FoundPage {
    FoundPage {
        title: format!("Title of {name}"),
        url: format!("https://{name}.test/"),
        description: format!("about {name}"),
    }
}

/// Two results in the words of each provider, and one without an address that can be read.
fn answer(provider: SearchProvider) -> &'static str {
    match provider {
        SearchProvider::SearXng => {
            r#"{"query":"x","number_of_results":2,"results":[
                {"title":"Title of one","url":"https://one.test/","content":"about one","engine":"e","score":2.5},
                {"title":"bad","url":"javascript:alert(1)","content":"no"},
                {"title":"Title of two","url":"https://two.test/","content":"about two"}]}"#
        }
        SearchProvider::Brave => {
            r#"{"type":"search","query":{"original":"x"},"web":{"type":"search","results":[
                {"title":"Title of one","url":"https://one.test/","description":"about one","age":"1"},
                {"title":"bad","url":7,"description":"no"},
                {"title":"Title of two","url":"https://two.test/","description":"about two"}]}}"#
        }
        SearchProvider::Tavily => {
            r#"{"query":"x","answer":null,"images":[],"response_time":1.2,"results":[
                {"title":"Title of one","url":"https://one.test/","content":"about one","score":0.9},
                {"title":"bad"},
                {"title":"Title of two","url":"https://two.test/","content":"about two","score":0.8}]}"#
        }
        SearchProvider::Exa => {
            r#"{"requestId":"r","results":[
                {"title":"Title of one","url":"https://one.test/","highlights":["about","one"]},
                {"title":"bad","url":null},
                {"title":"Title of two","url":"https://two.test/","highlights":["about two"]}]}"#
        }
    }
}

#[tokio::test]
async fn every_provider_is_asked_in_its_own_words() {
    for provider in ALL {
        let origin = Origin::answering(200, answer(provider)).await;
        let pages = service(provider, &origin.address)
            .search("rust & more", 5)
            .await
            .unwrap();
        assert_eq!(pages, [found("one"), found("two")], "{provider:?}");
        let (head, body) = origin.last();
        let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap());
        let body = String::from_utf8(body.to_vec()).unwrap();
        let path = head.uri.to_string();
        match provider {
            SearchProvider::SearXng => {
                assert_eq!(path, "/search?q=rust+%26+more&format=json&pageno=1");
            }
            SearchProvider::Brave => {
                assert!(
                    path.starts_with("/web/search?q=rust+%26+more&count=5"),
                    "{path}"
                );
                assert_eq!(header("x-subscription-token"), Some("key-of-the-operator"));
            }
            SearchProvider::Tavily => {
                assert_eq!(header("authorization"), Some("Bearer key-of-the-operator"));
                assert!(body.contains(r#""max_results":5"#), "{body}");
            }
            SearchProvider::Exa => {
                assert_eq!(header("x-api-key"), Some("key-of-the-operator"));
                assert!(body.contains(r#""numResults":5"#), "{body}");
            }
        }
    }
}

#[tokio::test]
async fn no_more_comes_than_was_asked_for_and_every_text_is_bounded() {
    let long = "x".repeat(5000);
    let entry = format!(r#"{{"title":"{long}","url":"https://a.test/","content":"{long}"}}"#);
    let body = format!(r#"{{"results":[{entry},{entry},{entry}]}}"#);
    let origin = Origin::answering(200, body).await;
    let pages = service(SearchProvider::SearXng, &origin.address)
        .search("x", 2)
        .await
        .unwrap();
    assert_eq!(pages.len(), 2);
    assert_eq!(
        (pages[0].title.len(), pages[0].description.len()),
        (300, 1000)
    );
}

#[tokio::test]
async fn a_provider_that_fails_is_told_of_without_its_own_words() {
    let secret = "your key key-of-the-operator is wrong";
    for (status, expected) in [
        (401, "did not take the operator's key"),
        (429, "no more requests for now"),
        (500, "refused the request"),
        (302, "refused the request"),
    ] {
        let origin = Origin::redirecting(status, "http://127.0.0.1:1/", secret).await;
        let failed = service(SearchProvider::Tavily, &origin.address)
            .search("x", 5)
            .await
            .unwrap_err()
            .to_string();
        assert!(failed.contains(expected), "{status}: {failed}");
        assert!(!failed.contains("key-of"), "{failed}");
        assert_eq!(origin.requests(), 1, "a redirection is not followed");
    }
    for (body, is_expected) in [
        (vec![b' '; 3 << 20], true),
        (b"<html>".to_vec(), false),
        (br#"{"results": 7}"#.to_vec(), false),
        ("[".repeat(100_000).into_bytes(), false),
    ] {
        let origin = Origin::answering(200, body).await;
        let failed = service(SearchProvider::SearXng, &origin.address)
            .search("x", 5)
            .await
            .unwrap_err();
        let is_too_large = matches!(failed, ServiceError::TooLarge { .. });
        let is_unreadable = matches!(failed, ServiceError::Unreadable { .. });
        assert!(
            is_too_large == is_expected && is_unreadable != is_expected,
            "{failed}"
        );
    }
}

#[test]
fn an_address_that_is_none_is_told_at_the_start() {
    for address in ["searx.test", "ftp://searx.test", "file:///etc", ""] {
        let service = SearchService::new(SearchSettings {
            provider: SearchProvider::SearXng,
            base_url: address.to_owned(),
            key: None,
            proxy: None,
        });
        assert!(service.is_err(), "{address:?}");
    }
}
