//! Whether a gateway of Hermes runs that would stand in the way of ours.
//!
//! Two programs that ask one platform with one token take each other's messages. Hermes tells of itself
//! twice: in its home by `gateway.pid` and `gateway_state.json`, and for the whole machine by a lock file
//! for each token, named after a hash of it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use hermetic_config::{Config, SlackIntake};
use hermetic_types::Secret;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::hermes_home::HermesHome;
use crate::regular_file;

/// A process that was seen to be alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HermesGateway {
    pub(super) pid: u32,
    /// The platform whose account it holds, where that is the one of our configuration.
    pub(super) holds: Option<&'static str>,
}

/// The one of this home, then those that hold one of our tokens.
pub(super) fn running(hermes: &HermesHome, config: Option<&Config>) -> Vec<HermesGateway> {
    let described = ["gateway.pid", "gateway_state.json"];
    let described = described.iter().filter_map(|name| hermes.json(name));
    let own = described.filter_map(|record| alive(&record)).next();
    let own = own.map(|pid| HermesGateway { pid, holds: None });
    let mut found: Vec<HermesGateway> = own.into_iter().collect();
    let accounts = config
        .into_iter()
        .flat_map(|config| accounts(config, hermes));
    for (platform, scope, token) in accounts {
        let name = lock_name(scope, &token);
        let holder = |folder: PathBuf| {
            let text = regular_file::read_text(&folder.join(&name), LONGEST_LOCK).ok()?;
            alive(&serde_json::from_str(&text).ok()?)
        };
        let Some(pid) = lock_folders(hermes).find_map(holder) else {
            continue;
        };
        match found.iter_mut().find(|one| one.pid == pid) {
            Some(one) => one.holds = one.holds.or(Some(platform)),
            None => found.push(HermesGateway {
                pid,
                holds: Some(platform),
            }),
        }
    }
    found
}

/// The accounts of our configuration, with the name under which Hermes locks each.
fn accounts(config: &Config, hermes: &HermesHome) -> Vec<(&'static str, &'static str, Secret)> {
    let platforms = config.platforms();
    let telegram = platforms.telegram.accounts.values();
    let telegram = telegram.map(|one| ("telegram", "telegram-bot-token", one.token.clone()));
    let discord = platforms.discord.accounts.values();
    let discord = discord.map(|one| ("discord", "discord-bot-token", one.token.clone()));
    let slack = platforms.slack.accounts.values();
    let slack = slack.filter_map(|one| match &one.intake {
        SlackIntake::SocketMode { app_token } => {
            Some(("slack", "slack-app-token", app_token.clone()))
        }
        _ => None,
    });
    let signal = platforms.signal.accounts.values();
    let signal = signal.map(|one| ("signal", "signal-phone", Secret::new(one.number.clone())));
    // Of WhatsApp by a bridge it locks the folder of the session, which lies in its home: in the new place, or
    // in the old one.
    let folders = ["platforms/whatsapp/session", "whatsapp/session"];
    let folders = folders.map(|name| hermes.path(name).display().to_string());
    let whatsapp = folders.into_iter().map(Secret::new);
    let whatsapp = whatsapp.map(|folder| ("whatsapp", "whatsapp-session", folder));
    let whatsapp = whatsapp.filter(|_| platforms.whatsapp.platform.enabled);
    telegram
        .chain(discord)
        .chain(slack)
        .chain(signal)
        .chain(whatsapp)
        .collect()
}

/// A lock file is a line or two.
const LONGEST_LOCK: u64 = 64 << 10;

/// Ours, and that of whoever has this home: root looks for somebody else.
fn lock_folders(hermes: &HermesHome) -> impl Iterator<Item = PathBuf> {
    let folder = |name| {
        env::var_os(name)
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from)
    };
    let of_state = |state: PathBuf| state.join("hermes/gateway-locks");
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    let ours = folder("HERMES_GATEWAY_LOCK_DIR").or_else(|| state.map(of_state));
    let theirs = hermes.path("../.local/state");
    [ours, Some(of_state(theirs))].into_iter().flatten()
}

fn lock_name(scope: &str, token: &Secret) -> String {
    let hash = Sha256::digest(token.expose().as_bytes());
    let hash: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{scope}-{hash}.lock")
}

/// The process of a record, if it is the very one that wrote it.
fn alive(record: &Value) -> Option<u32> {
    // An old `gateway.pid` is nothing but the number.
    let pid = record.get("pid").unwrap_or(record).as_u64()?;
    let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let process = PathBuf::from(format!("/proc/{pid}"));
    if !process.is_dir() {
        return None;
    }
    let is_same = match record.get("start_time").and_then(Value::as_u64) {
        Some(written) => started(&process) == Some(written),
        None => looks_like_hermes(&process),
    };
    is_same.then_some(pid)
}

/// In ticks since the machine was started. The program's name stands in brackets and may hold blanks.
fn started(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let after_name = stat.rsplit_once(") ")?.1;
    // The 22nd field of all, the 20th after the name.
    after_name.split_whitespace().nth(19)?.parse().ok()
}

fn looks_like_hermes(process: &Path) -> bool {
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.contains("hermes") && !line.contains("hermetic") && line.contains("gateway")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lock_is_named_as_hermes_names_it() {
        // What its release 0.19 calls the lock of this token.
        assert_eq!(
            lock_name("telegram-bot-token", &Secret::new("123:abc")),
            LOCK_OF_123_ABC
        );
    }

    const LOCK_OF_123_ABC: &str = "telegram-bot-token-f221311c7ec8b6e8.lock";

    #[test]
    fn a_number_that_somebody_else_has_now_is_no_gateway() {
        let own = std::process::id();
        let process = PathBuf::from("/proc/self");
        let since = started(&process).unwrap();
        assert_eq!(alive(&json!({"pid": own, "start_time": since})), Some(own));
        assert_eq!(alive(&json!({"pid": own, "start_time": since + 1})), None);
        assert_eq!(alive(&json!(own)), None, "this is no Hermes");
        assert_eq!(alive(&json!({"pid": 0})), None);
        assert_eq!(alive(&json!("nonsense")), None);
    }
}
