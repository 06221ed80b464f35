//! What `ssh` says when it fails, as something to act on.

use std::io;

use hermetic_sandbox::BackendError;

use super::SshConfig;

/// As much of what a program says as a person reads.
pub(super) const MOST_STDERR_BYTES: usize = 16 << 10;

/// Why there is no connection.
pub(super) fn not_connected(config: &SshConfig, said: &str) -> BackendError {
    let to = config.destination();
    let has = |text: &str| said.contains(text);
    let (what, remedy) = if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        (
            format!("{to} shows another host key than before: nothing was sent to it"),
            format!(
                "somebody may stand in between. If the host was really set up anew, remove the \
                 old key: {}",
                forget_key(config, said)
            ),
        )
    } else if has("Host key verification failed") {
        (
            format!("the host key of {to} is not known, and your ssh configuration wants it to be"),
            format!("connect once by hand and compare the fingerprint: ssh {to}"),
        )
    } else if has("Permission denied") {
        (
            format!("{to} does not let us in: {}", last_line(said)),
            "give terminal.ssh_key, or load the key into your agent; passwords are not asked for"
                .to_owned(),
        )
    } else if has("UNPROTECTED PRIVATE KEY FILE") || has("Load key") {
        (
            format!("the key for {to} cannot be used: {}", last_line(said)),
            "check the file that terminal.ssh_key names, and chmod 600 it".to_owned(),
        )
    } else if has("Could not resolve") {
        (
            format!("{to} is no known host: {}", last_line(said)),
            "check terminal.ssh_host".to_owned(),
        )
    } else {
        let said = match last_line(said) {
            "" => "the connection ended at once",
            said => said,
        };
        (
            format!("{to} cannot be reached: {said}"),
            format!("see whether `ssh {to}` works on this machine"),
        )
    };
    BackendError::Unavailable { what, remedy }
}

/// The connection stood, and a program on the other side did not do its part.
pub(super) fn not_answered(config: &SshConfig, said: &str) -> BackendError {
    let why = match last_line(said) {
        "" => "it ended without an answer",
        said => said,
    };
    BackendError::failed(
        format!("get an answer from {}", config.destination()),
        io::Error::other(why.to_owned()),
    )
}

/// The host takes no more channels on this connection.
pub(super) fn is_full(said: &str) -> bool {
    said.contains("Session open refused") || said.contains("session request failed")
}

fn forget_key(config: &SshConfig, said: &str) -> String {
    let file = said
        .lines()
        .find_map(|line| line.strip_prefix("Offending ")?.split(" key in ").nth(1))
        .and_then(|place| Some(place.trim().rsplit_once(':')?.0))
        .map_or_else(String::new, |file| format!(" -f '{file}'"));
    match config.port {
        Some(port) if port != 22 => format!("ssh-keygen{file} -R '[{}]:{port}'", config.host),
        _ => format!("ssh-keygen{file} -R '{}'", config.host),
    }
}

fn last_line(said: &str) -> &str {
    said.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or_default()
}
