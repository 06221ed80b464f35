//! A stand-in until the warden's `serve` is linked: one shell line per line, answered by output and
//! a status line.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, ExitCode, Stdio};

use crate::plan::{HOME, Plan, WORKSPACE};

pub(crate) fn serve(
    plan: Plan,
    listener: OwnedFd,
    first: Option<OwnedFd>,
    _oom_counter: Option<OwnedFd>,
) -> ExitCode {
    let env = environment(plan.env);
    let tied = plan.tied;
    if let Some(first) = first {
        let env = env.clone();
        std::thread::spawn(move || {
            answer(UnixStream::from(first), &env);
            if tied {
                std::process::exit(0);
            }
        });
    }
    for stream in UnixListener::from(listener).incoming().flatten() {
        let env = env.clone();
        std::thread::spawn(move || answer(stream, &env));
    }
    ExitCode::SUCCESS
}

/// The plan's words over ours, and nothing of the launcher's.
fn environment(asked: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", HOME),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("LANG", "C.UTF-8"),
        ("TERM", "xterm-256color"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    env.extend(asked);
    env
}

fn answer(stream: UnixStream, env: &BTreeMap<String, String>) {
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let output = Command::new("/bin/sh")
            .args(["-c", &format!("exec 2>&1\n{}", line.replace('\u{1}', "\n"))])
            .env_clear()
            .envs(env)
            .current_dir(WORKSPACE)
            .stdin(Stdio::null())
            .output();
        let (text, code) = match output {
            Ok(output) => (output.stdout, output.status.code().unwrap_or(-1)),
            Err(error) => (error.to_string().into_bytes(), -2),
        };
        let header = format!("{} {code}\n", text.len());
        if writer
            .write_all(header.as_bytes())
            .and_then(|()| writer.write_all(&text))
            .is_err()
        {
            return;
        }
    }
}
