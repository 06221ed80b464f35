//! The address of an endpoint, from what people write as its base.

use reqwest::Url;

use super::{ApiDialect, EndpointSettings, ModelEndpointError};

/// Where requests go.
pub(super) fn address(settings: &EndpointSettings) -> Result<Url, ModelEndpointError> {
    let mut url = base(&settings.base_url)?;
    let path = path(settings, url.path().trim_end_matches('/'));
    url.set_path(&path);
    if settings.dialect == ApiDialect::Gemini && settings.stream {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    for (name, value) in &settings.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(url)
}

fn base(base_url: &str) -> Result<Url, ModelEndpointError> {
    let parsed = Url::parse(base_url).ok();
    let fits = |url: &Url| {
        let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain
    };
    let wrong = ModelEndpointError::Url {
        // An address may hold a password; the host is enough to recognise it.
        host: parsed
            .as_ref()
            .and_then(Url::host_str)
            .unwrap_or_default()
            .to_owned(),
    };
    parsed.filter(fits).ok_or(wrong)
}

/// Vendors document their bases with and without the version, and people copy either.
fn path(settings: &EndpointSettings, base: &str) -> String {
    let ends_in_version = base
        .rsplit('/')
        .next()
        .is_some_and(|last| last.starts_with('v') && last[1..].starts_with(char::is_numeric));
    match settings.dialect {
        ApiDialect::ChatCompletions => format!("{base}/chat/completions"),
        ApiDialect::Responses => format!("{base}/responses"),
        ApiDialect::AnthropicMessages if ends_in_version => format!("{base}/messages"),
        ApiDialect::AnthropicMessages => format!("{base}/v1/messages"),
        ApiDialect::Gemini => {
            let version = if ends_in_version { "" } else { "/v1beta" };
            let model = settings.model.trim_start_matches("models/");
            let verb = if settings.stream {
                "streamGenerateContent"
            } else {
                "generateContent"
            };
            format!("{base}{version}/models/{model}:{verb}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dialect: ApiDialect, base: &str) -> String {
        let settings = EndpointSettings::speaking(dialect, base, None, "m/x?y");
        address(&settings).expect(base).to_string()
    }

    #[test]
    fn bases_are_completed_however_they_are_written() {
        let table = [
            (
                ApiDialect::ChatCompletions,
                "https://h/v1/",
                "https://h/v1/chat/completions",
            ),
            (
                ApiDialect::Responses,
                "https://h/v1",
                "https://h/v1/responses",
            ),
            (
                ApiDialect::AnthropicMessages,
                "https://h",
                "https://h/v1/messages",
            ),
            (
                ApiDialect::AnthropicMessages,
                "https://h/v1/",
                "https://h/v1/messages",
            ),
            (
                ApiDialect::AnthropicMessages,
                "https://h/anthropic",
                "https://h/anthropic/v1/messages",
            ),
            (
                ApiDialect::Gemini,
                "https://h",
                "https://h/v1beta/models/m/x%3Fy:streamGenerateContent?alt=sse",
            ),
            (
                ApiDialect::Gemini,
                "https://h/v1",
                "https://h/v1/models/m/x%3Fy:streamGenerateContent?alt=sse",
            ),
        ];
        for (dialect, base, expected) in table {
            assert_eq!(of(dialect, base), expected);
        }
    }

    #[test]
    fn a_deployment_at_azure_has_its_version_in_the_query() {
        let base = "https://r.openai.azure.com/openai/deployments/d";
        let mut settings = EndpointSettings::new(base, None, "d");
        settings.query = vec![("api-version".to_owned(), "2024-10-21".to_owned())];
        assert_eq!(
            address(&settings).expect("an address").as_str(),
            "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
        );
    }
}
