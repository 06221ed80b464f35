//! Lines of shell for an account whose own shell is not known.

use hermetic_types::{InstallationId, RunId, SandboxId};
use hermetic_warden::protocol::ByteString;

/// What an argument of a program may be long, less what quoting adds to it.
const LONGEST_COMMAND_LINE: usize = 24 << 10;

/// A script of any bytes as one line: every byte that a shell could mind is written as its number.
/// Nothing where it is too long for that.
pub(super) fn carry(script: &[u8]) -> Option<String> {
    if script.len() > LONGEST_COMMAND_LINE {
        return None;
    }
    let mut coded = String::with_capacity(script.len() * 2);
    for byte in script {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                coded.push(char::from(*byte));
            }
            other => coded.push_str(&format!("\\0{other:03o}")),
        }
    }
    Some(format!(
        "exec sh -c 'eval \"$(printf %b \"$1\")\"' sh '{coded}'"
    ))
}

/// A word that a plain shell reads as exactly these bytes.
pub(super) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Where this installation's sandboxes are.
pub(super) fn all(installation: &InstallationId) -> String {
    format!("$HOME/.hermetic/{installation}/plain")
}

/// The variable by which everything a sandbox started is found again.
pub(super) fn sandbox_mark(id: &SandboxId) -> String {
    format!("HERMETIC_SANDBOX={id}")
}

pub(super) fn run_mark(id: &RunId) -> String {
    format!("HERMETIC_RUN={id}")
}

/// Ends every process that carries the mark, and looks again until none does. Ends with 75 where
/// some would not go.
pub(super) fn end_marked(mark: &str) -> String {
    format!(
        "n=0; while [ $n -lt 60 ]; do found=; for p in /proc/[0-9]*; do \
         if tr \"\\0\" \"\\n\" 2>/dev/null < $p/environ | grep -qx {mark}; then \
         found=1; kill -KILL ${{p#/proc/}}; fi; done 2>/dev/null; \
         [ -n \"$found\" ] || break; n=$((n+1)); sleep 0.05; done; \
         [ -z \"$found\" ] || exit 75"
    )
}

/// A command as a script is made of it.
pub(super) struct ScriptWork<'a> {
    pub(super) cwd: Option<&'a ByteString>,
    /// Read by the shell: it may name `$HOME`.
    pub(super) default_cwd: &'a str,
    pub(super) env: &'a [(Vec<u8>, Vec<u8>)],
    pub(super) argv: &'a [ByteString],
    pub(super) merged: bool,
}

/// Goes where the command is to start, sets its variables, runs its words, says how that ended: the
/// channel itself would wait for all that was left in the background.
///
/// The word that begins the last line is the first line of the input. In the script it could be read by
/// the command, among its parent's arguments; this way only this shell's memory holds it. The command is
/// put in its place by `exec`, so that no builtin of this shell, which knows the word, is ever run.
pub(super) fn command(work: &ScriptWork<'_>) -> Vec<u8> {
    let mut script = b"read -r last_word || exit 125\n\
        ended() { printf \"\\n%s %d\\n\" \"$last_word\" $1 >&2; exit $1; }\n"
        .to_vec();
    script.extend_from_slice(b"cd -- ");
    match work.cwd {
        Some(cwd) => script.extend(quoted(&cwd.0)),
        None => script.extend_from_slice(format!("\"{}\"", work.default_cwd).as_bytes()),
    }
    script.extend_from_slice(b" || ended 126\n(");
    for (name, value) in work.env {
        script.extend_from_slice(b"export ");
        script.extend_from_slice(name);
        script.push(b'=');
        script.extend(quoted(value));
        script.push(b'\n');
    }
    script.extend_from_slice(b"exec ");
    for word in work.argv {
        script.extend(quoted(&word.0));
        script.push(b' ');
    }
    if work.merged {
        script.extend_from_slice(b"2>&1");
    }
    script.extend_from_slice(b")\nended $?\n");
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn any_words_arrive_as_they_were() {
        let words = [
            "printf",
            "%s|",
            "it's",
            "a\nb",
            "$HOME `x` \\",
            "%s\\n",
            "ü!",
            "",
        ];
        let argv: Vec<ByteString> = words.iter().map(|word| (*word).into()).collect();
        let script = command(&ScriptWork {
            cwd: Some(&"/".into()),
            default_cwd: "",
            env: &[],
            argv: &argv,
            merged: false,
        });
        let line = carry(&script).unwrap();
        for shell in ["sh", "bash"] {
            let out = output(shell, &line, "over\n");
            let said = String::from_utf8(out.stdout).unwrap();
            assert_eq!(said, "it's|a\nb|$HOME `x` \\|%s\\n|ü!||");
            assert_eq!(String::from_utf8(out.stderr).unwrap(), "\nover 0\n");
        }
    }

    /// The word is known to nothing that a command can run by its name.
    #[test]
    fn no_builtin_of_the_shell_is_run() {
        let lines = [["set", ""], ["ended", "0"], ["eval", "echo $last_word"]].map(|words| {
            let argv = words.map(ByteString::from);
            let script = command(&ScriptWork {
                cwd: Some(&"/".into()),
                default_cwd: "",
                env: &[],
                argv: &argv,
                merged: true,
            });
            carry(&script).unwrap()
        });
        for shell in ["sh", "bash"] {
            for line in &lines {
                let out = output(shell, line, "secret-word\nrest of the input");
                let stdout = String::from_utf8(out.stdout).unwrap();
                assert!(!stdout.contains("secret-word"), "{shell}: {stdout}");
                let stderr = String::from_utf8(out.stderr).unwrap();
                // Not found, or in a folder of the path that this user may not look into.
                let not_run = ["\nsecret-word 127\n", "\nsecret-word 126\n"];
                assert!(not_run.contains(&stderr.as_str()), "{shell}: {stderr}");
            }
        }
    }

    #[test]
    fn the_rest_of_the_input_is_the_commands() {
        let argv = ["cat"].map(ByteString::from);
        let script = command(&ScriptWork {
            cwd: Some(&"/".into()),
            default_cwd: "",
            env: &[],
            argv: &argv,
            merged: false,
        });
        let line = carry(&script).unwrap();
        for shell in ["sh", "bash"] {
            let out = output(shell, &line, "word\nall of this\nis left");
            assert_eq!(out.stdout, b"all of this\nis left", "{shell}");
        }
    }

    fn output(shell: &str, line: &str, input: &str) -> std::process::Output {
        use std::io::Write;
        use std::process::Stdio;
        let mut child = Command::new(shell)
            .args(["-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    #[test]
    fn what_is_too_long_for_a_line_is_not_cut() {
        assert_eq!(carry(&[b'x'; LONGEST_COMMAND_LINE + 1]), None);
    }
}
