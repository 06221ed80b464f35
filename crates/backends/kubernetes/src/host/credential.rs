//! Who we are to the cluster: a token, a file of one, or a program that is asked for one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hermetic_types::Secret;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::access::AccessError;

/// A login that asks a person something waits for ever; nobody is there.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);
/// What a program said is asked for again after so long, or when the cluster does not take it any more.
const PROGRAM_TOKEN_AGE: Duration = Duration::from_secs(300);

pub(super) enum CredentialSource {
    /// A client certificate says it all, or nothing is needed.
    Nothing,
    Token(Secret),
    /// Read for every request: the cluster rotates it.
    File(PathBuf),
    Program(CredentialProgram),
}

/// An exec credential plugin, as `aws eks get-token` is one.
pub(super) struct CredentialProgram {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    version: String,
    hint: Option<String>,
    held: Mutex<Option<(Secret, Instant)>>,
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    token: Option<Secret>,
    client_certificate_data: Option<Secret>,
}

impl CredentialSource {
    pub(super) async fn token(&self) -> Result<Option<Secret>, AccessError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Token(token) => Ok(Some(token.clone())),
            Self::File(path) => {
                let read = tokio::fs::read_to_string(path).await;
                let text = read.map_err(|error| AccessError::file(path, &error))?;
                Ok(Some(Secret::new(text.trim())))
            }
            Self::Program(program) => program.token().await.map(Some),
        }
    }

    /// The cluster did not take it: whatever was kept is asked for anew.
    pub(super) async fn forget(&self) {
        if let Self::Program(program) = self {
            program.held.lock().await.take();
        }
    }
}

impl CredentialProgram {
    pub(super) fn of(folder: &Path, exec: &Value, context: &str) -> Result<Self, AccessError> {
        let command = exec["command"].as_str().unwrap_or_default();
        let version = exec["apiVersion"].as_str().unwrap_or_default();
        let known = [
            "client.authentication.k8s.io/v1",
            "client.authentication.k8s.io/v1beta1",
        ];
        if command.is_empty() || !known.contains(&version) {
            return Err(AccessError::new(format!(
                "the credential program of context {context} is of a kind that is not known ({version})"
            ))
            .help("write a new kubeconfig with the tool of your cluster's provider"));
        }
        // As kubectl has it: a word with a slash is relative to the kubeconfig, another one is looked up.
        let program = if command.contains('/') {
            folder.join(command)
        } else {
            command.into()
        };
        let texts = |list: &Value| {
            let items = list.as_array().into_iter().flatten();
            let items = items.filter_map(|item| item.as_str().map(str::to_owned));
            items.collect::<Vec<_>>()
        };
        let env = exec["env"].as_array().into_iter().flatten();
        let env = env.filter_map(|entry| {
            Some((
                entry["name"].as_str()?.to_owned(),
                entry["value"].as_str()?.to_owned(),
            ))
        });
        Ok(Self {
            program,
            args: texts(&exec["args"]),
            env: env.collect(),
            version: version.to_owned(),
            hint: exec["installHint"].as_str().map(str::to_owned),
            held: Mutex::new(None),
        })
    }

    async fn token(&self) -> Result<Secret, AccessError> {
        let mut held = self.held.lock().await;
        if let Some((token, since)) = held.as_ref()
            && since.elapsed() < PROGRAM_TOKEN_AGE
        {
            return Ok(token.clone());
        }
        let token = self.ask().await?;
        *held = Some((token.clone(), Instant::now()));
        Ok(token)
    }

    async fn ask(&self) -> Result<Secret, AccessError> {
        let name = self.program.display();
        let info = json!({
            "apiVersion": self.version, "kind": "ExecCredential", "spec": {"interactive": false},
        });
        let asked = Command::new(&self.program)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = match timeout(PROGRAM_TIMEOUT, asked).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => {
                let hint = self.hint.clone();
                return Err(
                    AccessError::new(format!("{name} cannot be started: {error}")).help(
                        hint.unwrap_or_else(|| {
                            "install it, or use a kubeconfig with a token or a certificate"
                                .to_owned()
                        }),
                    ),
                );
            }
            Err(_) => {
                return Err(
                    AccessError::new(format!("{name} said nothing for half a minute"))
                        .help("log in by hand once; it may be asking something"),
                );
            }
        };
        if !output.status.success() {
            // Its stdout may hold a token; its stderr is words.
            let said = String::from_utf8_lossy(&output.stderr);
            let said: String = said.trim().chars().take(300).collect();
            return Err(AccessError::new(format!("{name} failed: {said}"))
                .help("log in with it by hand, then try again"));
        }
        let answer: Result<ExecCredential, _> = serde_json::from_slice(&output.stdout);
        match answer.ok().and_then(|answer| answer.status) {
            Some(ExecStatus {
                token: Some(token), ..
            }) if !token.is_empty() => Ok(token),
            Some(ExecStatus {
                client_certificate_data: Some(_),
                ..
            }) => Err(AccessError::new(format!(
                "{name} gives a client certificate, which is supported only in the kubeconfig itself"
            ))),
            _ => Err(AccessError::new(format!("{name} gave no token"))),
        }
    }
}

impl fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Token(_) => "Token",
            Self::File(_) => "File",
            Self::Program(_) => "Program",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, script: &str) -> CredentialProgram {
        let path = folder.join("login");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "args": ["tok"],
            "env": [{"name": "TAIL", "value": "en"}],
        });
        CredentialProgram::of(folder, &exec, "c").unwrap()
    }

    #[tokio::test]
    async fn a_program_is_asked_and_what_it_said_is_kept_until_it_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("asked");
        let script = format!(
            "echo x >> {}; echo '{{\"status\": {{\"token\": \"'$1$TAIL'\"}}}}'",
            mark.display()
        );
        let program = program(folder.path(), &script);
        let asked = || fs::read_to_string(&mark).unwrap().lines().count();
        let source = CredentialSource::Program(program);
        for _ in 0..3 {
            assert_eq!(source.token().await.unwrap().unwrap().expose(), "token");
        }
        assert_eq!(asked(), 1);
        source.forget().await;
        source.token().await.unwrap();
        assert_eq!(asked(), 2);
    }

    #[tokio::test]
    async fn a_program_that_fails_is_named_with_its_words_and_not_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(
            folder.path(),
            "echo as-secret; echo 'please log in' >&2; exit 1",
        );
        let error = program.ask().await.unwrap_err().to_string();
        assert!(
            error.contains("please log in") && !error.contains("as-secret"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_file_is_read_anew_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let source = CredentialSource::File(path.clone());
        for token in ["one", "two"] {
            fs::write(&path, format!("{token}\n")).unwrap();
            assert_eq!(source.token().await.unwrap().unwrap().expose(), token);
        }
        fs::remove_file(&path).unwrap();
        assert!(source.token().await.is_err());
    }
}
