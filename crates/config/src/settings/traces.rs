//! Where traces go: what is written, else what the standard variables say.

use std::collections::BTreeMap;

use hermetic_types::Secret;

use super::gateway::TraceConfig;
use super::pick::SettingPicker;
use crate::problem::ConfigProblem;

const ENDPOINT: &str = "gateway.telemetry.otlp.endpoint";
const HEADERS: &str = "gateway.telemetry.otlp.headers";
const SERVICE: &str = "gateway.telemetry.otlp.service_name";
const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Below the address of a collector, by the standard.
const PATH: &str = "v1/traces";

pub(super) fn build(
    pick: &SettingPicker<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<TraceConfig> {
    let endpoint = pick.maybe_text(ENDPOINT).filter(|text| !text.is_empty())?;
    let Some(address) = address(&endpoint) else {
        problems.push(
            ConfigProblem::error("this is no address of a collector")
                .of_key(ENDPOINT)
                .help("write http://host:4318 or https://host; /v1/traces is added"),
        );
        return None;
    };
    let written = pick.pairs(HEADERS);
    let headers = match written.is_empty() {
        false => written,
        true => listed(&pick.variable(HEADERS_VARIABLE).unwrap_or_default()),
    };
    if let Some(name) = headers.keys().find(|name| !is_header(name)) {
        problems.push(
            ConfigProblem::error(format!("`{name}` is no name of a header"))
                .of_key(HEADERS)
                .help("write letters, digits and `-`, as in `x-api-key`"),
        );
        return None;
    }
    Some(TraceConfig {
        address,
        headers,
        service_name: pick.text(SERVICE),
    })
}

fn address(endpoint: &str) -> Option<String> {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme))?;
    let is_plain =
        !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace);
    let whole = endpoint.trim_end_matches('/');
    is_plain.then(|| match whole.ends_with(PATH) {
        true => whole.to_owned(),
        false => format!("{whole}/{PATH}"),
    })
}

/// `name=value,name=value`, as the variable has it.
fn listed(text: &str) -> BTreeMap<String, Secret> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), Secret::new(value.trim())))
        .collect()
}

fn is_header(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.len() <= 128 && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_added_once_and_other_schemes_are_refused() {
        for (endpoint, whole) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://c.example/otlp/v1/traces",
                "https://c.example/otlp/v1/traces",
            ),
        ] {
            assert_eq!(address(endpoint).as_deref(), Some(whole));
        }
        for wrong in [
            "127.0.0.1:4318",
            "grpc://x:4317",
            "http://",
            "http:///x",
            "http://a b",
        ] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn headers_of_the_variable_are_pairs() {
        let found = listed("x-api-key=abc=, tenant = t");
        assert_eq!(found["x-api-key"].expose(), "abc=");
        assert_eq!(found["tenant"].expose(), "t");
        assert!(listed("nonsense").is_empty());
        assert!(is_header("x-api-key") && !is_header("x y") && !is_header(""));
    }
}
