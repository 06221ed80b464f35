//! `auth: oauth` of an MCP server.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_oauth::{OAuthSettings, check_server_address};
use hermetic_types::Secret;

use crate::wording::short;

/// Longer than anybody looks at a page before the address in it is of no use.
const LONGEST_WAIT: u64 = 3600;

/// The settings of a login, or why there can be none.
pub(super) fn login(
    url: &str,
    written: &BTreeMap<String, Secret>,
) -> Result<OAuthSettings, String> {
    check_server_address(url).map_err(|error| {
        format!("a login needs an https:// address ({error}); give one, or remove `auth: oauth`")
    })?;
    let mut login = OAuthSettings::default();
    let mut takes_documents = true;
    for (name, value) in written {
        let text = value.expose();
        let some = || Some(text.to_owned()).filter(|text| !text.is_empty());
        let unusable = |wanted: &str| format!("its `oauth: {name}` has to be {wanted}");
        match name.as_str() {
            "client_id" => login.client_id = some(),
            "client_secret" => login.client_secret = some().map(Secret::new),
            "scope" => login.scope = some(),
            "issuer" => {
                check_server_address(text).map_err(|_| unusable("an https:// address"))?;
                login.issuer = some();
            }
            "client_name" => login.client_name = some().unwrap_or(login.client_name),
            "client_metadata_url" => {
                let document = some().filter(|address| address.starts_with("https://"));
                login.client_metadata_url =
                    Some(document.ok_or_else(|| unusable("an https:// address"))?);
            }
            "cimd" => takes_documents = text != "false",
            "redirect_port" => {
                let port = text.parse().ok().filter(|port| *port != 0);
                login.redirect_port = Some(port.ok_or_else(|| unusable("the number of a port"))?);
            }
            "redirect_host" => match text {
                "127.0.0.1" | "localhost" => login.redirect_host = text.to_owned(),
                _ => return Err(unusable("127.0.0.1 or localhost")),
            },
            "redirect_uri" => {
                check_server_address(text).map_err(|_| unusable("an https:// address"))?;
                login.redirect_uri = some();
            }
            "timeout" => {
                let seconds = text.parse().ok();
                let seconds = seconds.filter(|seconds| (1..=LONGEST_WAIT).contains(seconds));
                let seconds = seconds.ok_or_else(|| unusable("a number of seconds up to 3600"))?;
                login.timeout = Duration::from_secs(seconds);
            }
            // Hermes has it for servers that turn some clients away.
            "user_agent" => {}
            _ => return Err(format!("`oauth: {}` is not known", short(name))),
        }
    }
    if login.client_secret.is_some() && login.client_id.is_none() {
        return Err("its `oauth: client_secret` needs a `client_id` beside it".to_owned());
    }
    login.client_metadata_url = login.client_metadata_url.filter(|_| takes_documents);
    Ok(login)
}
