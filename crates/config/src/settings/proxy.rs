//! The proxy between us and the world: what is written, else what the environment says.

use hermetic_upstream::{ProxyExceptions, UpstreamProxy};

use super::pick::SettingPicker;
use crate::problem::ConfigProblem;

const OWN: &str = "gateway.proxy";
const EXCEPTIONS: &str = "gateway.no_proxy";
const OF_SANDBOXES: &str = "gateway.egress.upstream_proxy";

/// The word for "none", where the environment names one.
const DIRECT: &str = "none";

/// The variables that other programs go by, the strongest first. Nearly everything here is TLS.
const VARIABLES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "HTTP_PROXY",
    "http_proxy",
];

/// The hosts that are reached without any proxy.
pub(super) fn exceptions(pick: &SettingPicker<'_>) -> ProxyExceptions {
    let variable = |name| pick.variable(name);
    let text = pick
        .maybe_text(EXCEPTIONS)
        .or_else(|| variable("NO_PROXY"))
        .or_else(|| variable("no_proxy"));
    ProxyExceptions::parse(&text.unwrap_or_default())
}

/// The proxy of the gateway's own requests.
pub(super) fn own(
    pick: &SettingPicker<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<UpstreamProxy> {
    let found = match pick.maybe_text(OWN) {
        Some(text) => written(OWN, &text, problems),
        None => of_environment(pick, problems),
    };
    found.map(|proxy| proxy.except(exceptions(pick)))
}

/// The proxy of what leaves sandboxes: the gateway's own, unless another is written.
pub(super) fn of_sandboxes(
    pick: &SettingPicker<'_>,
    own: Option<&UpstreamProxy>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<UpstreamProxy> {
    match pick.maybe_text(OF_SANDBOXES) {
        Some(text) => {
            let found = written(OF_SANDBOXES, &text, problems);
            found.map(|proxy| proxy.except(exceptions(pick)))
        }
        None => own.cloned(),
    }
}

fn written(key: &str, text: &str, problems: &mut Vec<ConfigProblem>) -> Option<UpstreamProxy> {
    if text.is_empty() || text == DIRECT {
        return None;
    }
    match UpstreamProxy::parse(text) {
        Ok(proxy) => Some(proxy),
        Err(error) => {
            // Without the line it stands in: that may hold the password.
            let problem = ConfigProblem::error(error.to_string()).of_key(key);
            problems.push(problem.help("write http://host:port, or `none` for no proxy"));
            None
        }
    }
}

/// A variable is set for other programs as well, so what we cannot speak is passed over aloud.
fn of_environment(
    pick: &SettingPicker<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<UpstreamProxy> {
    for name in VARIABLES {
        let Some(text) = pick.variable(name) else {
            continue;
        };
        match UpstreamProxy::parse(&text) {
            Ok(proxy) => return Some(proxy),
            Err(error) => problems.push(
                ConfigProblem::warning(format!("{name} is passed over: {error}"))
                    .in_variable(name)
                    .help("write gateway.proxy: http://host:port, or `none`"),
            ),
        }
    }
    None
}
