//! Placing the warden in a sandbox that runs, and starting it there.

use std::fmt::Write as _;
use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxLifeline, SandboxSpec};

use super::toolbox::DaytonaToolbox;
use super::wire::one_line;

/// Anybody can write there, whoever the image's user is.
pub(crate) const HOME: &str = "/tmp/.hermetic";
pub(crate) const WARDEN: &str = "/tmp/.hermetic/warden";
pub(crate) const SOCKET: &str = "/tmp/.hermetic/warden.sock";
/// Moved over the old one, which may be running.
const NEW_WARDEN: &str = "/tmp/.hermetic/warden.new";
const SCRIPT: &str = "/tmp/.hermetic/start";
/// A shell that finds none asks its user questions.
const SHELL_MANNERS: &str = "/tmp/.hermetic/.zshrc";

/// How long a tied sandbox waits for its creator.
const DAYTONA_CREATOR_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn place(
    toolbox: &DaytonaToolbox,
    program: &[u8],
    spec: &SandboxSpec,
) -> Result<(), BackendError> {
    let script = script(spec)?;
    let files = [
        (NEW_WARDEN, program),
        (SCRIPT, script.as_bytes()),
        (SHELL_MANNERS, b"# of hermetic\n".as_slice()),
    ];
    let placed = toolbox.upload(&files).await;
    placed.map_err(|trouble| trouble.at("place the warden in the sandbox"))?;
    // A toolbox may or may not have a shell read this; both see the same words.
    let started = toolbox.execute(&format!("sh {SCRIPT}")).await;
    let started = started.map_err(|trouble| trouble.at("start the warden"))?;
    match started.exit_code {
        Some(0) => Ok(()),
        code => {
            let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
            let said = one_line(&started.result, 300);
            Err(BackendError::failed(
                "start the warden",
                format!("its script ended with {code}: {said}"),
            ))
        }
    }
}

/// What the toolbox runs; twice is as good as once. Its own variables stay out, the spec's are the
/// last word.
fn script(spec: &SandboxSpec) -> Result<String, BackendError> {
    let alone = match spec.lifeline {
        SandboxLifeline::Ledger => spec.lifetime,
        // It ends with its creator's link; this is for one who died before he had one.
        SandboxLifeline::Creator => spec.lifetime.min(DAYTONA_CREATOR_TIMEOUT),
    };
    let tied = match spec.lifeline {
        SandboxLifeline::Ledger => "",
        SandboxLifeline::Creator => " --tied",
    };
    let mut text = format!(
        "umask 022\n\
         chmod 700 {HOME} || exit 1\n\
         if [ -e {NEW_WARDEN} ]; then\n\
         chmod 500 {NEW_WARDEN} && mv -f {NEW_WARDEN} {WARDEN} || exit 1\nfi\n\
         ulimit -c 0\n\
         ulimit -n {} 2>/dev/null || ulimit -n \"$(ulimit -Hn)\"\n\
         mkdir -p /workspace 2>/dev/null || \
         {{ sudo -n mkdir -p /workspace && sudo -n chown \"$(id -u)\" /workspace; }} 2>/dev/null\n\
         cd /workspace 2>/dev/null && [ -w . ] || cd\n\
         // The toolbox's own variables name its keys and addresses, which are none of the agent's
         // business.
         for name in $(env | sed -n 's/^\\(DAYTONA_[A-Za-z0-9_]*\\)=.*/\\1/p'); do\n\
         unset \"$name\"\ndone\n",
        spec.limits.open_files
    );
    for (name, value) in &spec.env {
        check(name, value)?;
        let _ = writeln!(text, "export {name}={}", quoted(value));
    }
    let lifetime = alone.as_secs();
    // A session of its own, where there is a program for that, so that no hang-up reaches it.
    let _ = writeln!(
        text,
        "own=; command -v setsid >/dev/null && own=setsid\n\
         $own {WARDEN} sealed serve --listen {SOCKET} --lifetime {lifetime}{tied} \
         </dev/null >/dev/null 2>&1 &"
    );
    Ok(text)
}

fn check(name: &str, value: &str) -> Result<(), BackendError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    if named && !name.is_empty() && !value.contains('\0') {
        return Ok(());
    }
    Err(BackendError::Refused {
        what: format!("the variable {name:?}"),
        why: "a name is letters, digits and underscores, and a value holds no NUL byte".to_owned(),
    })
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_a_value_in_any_shell() {
        let value = "a 'b' $(id) `id` \\ \"\n*;\u{7}";
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("X={}; printf %s \"$X\"", quoted(value))])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
    }

    #[test]
    fn a_name_that_a_shell_would_run_is_refused() {
        for name in ["", "A B", "A;id", "1A", "A-B", "Ä"] {
            assert!(check(name, "x").is_err(), "{name}");
        }
        assert!(check("A", "\0").is_err());
        assert!(check("_A1", "").is_ok());
    }
}
