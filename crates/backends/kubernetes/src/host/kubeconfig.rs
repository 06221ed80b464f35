//! A kubeconfig: which cluster a context means, and how it is spoken to.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::access::AccessError;
use super::credential::{CredentialProgram, CredentialSource};
use super::yaml;
use hermetic_types::Secret;

/// One kubeconfig, or several put together as `KUBECONFIG` has them: the first that names something wins.
#[derive(Debug, Default)]
pub(super) struct Kubeconfig {
    files: Vec<(PathBuf, Value)>,
}

/// What one context says, with files read and paths made whole.
#[derive(Debug)]
pub(super) struct ContextFacts {
    pub(super) name: String,
    pub(super) server: String,
    pub(super) namespace: Option<String>,
    pub(super) authority: Option<Vec<u8>>,
    pub(super) tls_server_name: Option<String>,
    pub(super) proxy: Option<String>,
    pub(super) credential: CredentialSource,
    /// Certificate and key, PEM, one after the other.
    pub(super) identity: Option<Secret>,
}

impl Kubeconfig {
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, AccessError> {
        let mut files = Vec::new();
        for path in paths {
            let text = match std::fs::read_to_string(path) {
                Ok(text) => text,
                // As kubectl has it: one of several may be missing.
                Err(_) if paths.len() > 1 && !path.exists() => continue,
                Err(source) => return Err(AccessError::file(path, &source)),
            };
            let value = yaml::parse(&text).map_err(|error| AccessError::file(path, &error))?;
            files.push((path.clone(), value));
        }
        Ok(Self { files })
    }

    /// `wanted`, else the one that is current.
    pub(super) fn context(&self, wanted: Option<&str>) -> Result<ContextFacts, AccessError> {
        let current = || {
            let mut current = self.files.iter().map(|(_, file)| &file["current-context"]);
            current.find_map(|name| name.as_str().filter(|name| !name.is_empty()))
        };
        let name = wanted.or_else(current).ok_or_else(|| {
            AccessError::new("the kubeconfig names no current context").help(
                "write terminal.kubernetes_context, or choose one: kubectl config use-context",
            )
        })?;
        let (_, context) = self.named("contexts", "context", name)?;
        let part = |key: &str| {
            context[key].as_str().ok_or_else(|| {
                AccessError::new(format!("context {name} of the kubeconfig names no {key}"))
                    .help("mend the kubeconfig, or choose another with terminal.kubernetes_context")
            })
        };
        let (folder, cluster) = self.named("clusters", "cluster", part("cluster")?)?;
        check_cluster(name, cluster)?;
        let server = text(cluster, "server").ok_or_else(|| {
            AccessError::new(format!("the cluster of context {name} has no server"))
                .help("mend the kubeconfig")
        })?;
        let authority = material(folder, cluster, "certificate-authority")?;
        let (credential, identity) = match text(context, "user") {
            Some(user) => {
                let (folder, user) = self.named("users", "user", &user)?;
                user_facts(folder, user, name)?
            }
            None => (CredentialSource::Nothing, None),
        };
        Ok(ContextFacts {
            name: name.to_owned(),
            server,
            namespace: text(context, "namespace"),
            authority,
            tls_server_name: text(cluster, "tls-server-name"),
            proxy: text(cluster, "proxy-url"),
            credential,
            identity,
        })
    }

    fn named(&self, list: &str, kind: &str, name: &str) -> Result<(&Path, &Value), AccessError> {
        for (path, file) in &self.files {
            let mut entries = file[list].as_array().into_iter().flatten();
            if let Some(entry) = entries.find(|entry| entry["name"].as_str() == Some(name)) {
                return Ok((path.parent().unwrap_or(Path::new("/")), &entry[kind]));
            }
        }
        Err(
            AccessError::new(format!("the kubeconfig has no {kind} named {name}")).help(
                "kubectl config get-contexts shows what there is; choose one with \
                 terminal.kubernetes_context",
            ),
        )
    }
}

fn check_cluster(context: &str, cluster: &Value) -> Result<(), AccessError> {
    if cluster["insecure-skip-tls-verify"].as_str() == Some("true") {
        return Err(AccessError::new(format!(
            "context {context} does not check who the cluster is (insecure-skip-tls-verify)"
        ))
        .help("write its certificate-authority into the kubeconfig instead"));
    }
    Ok(())
}

fn user_facts(
    folder: &Path,
    user: &Value,
    context: &str,
) -> Result<(CredentialSource, Option<Secret>), AccessError> {
    for (key, instead) in [
        ("username", "a token or a client certificate"),
        (
            "auth-provider",
            "an exec credential plugin, as newer kubeconfigs have",
        ),
        ("as", "an account that needs no impersonation"),
    ] {
        if !user[key].is_null() {
            return Err(AccessError::new(format!(
                "the user of context {context} has `{key}`, which is not supported"
            ))
            .help(format!("use {instead}")));
        }
    }
    let certificate = material(folder, user, "client-certificate")?;
    let key = material(folder, user, "client-key")?;
    let identity = match (certificate, key) {
        (Some(mut certificate), Some(key)) => {
            certificate.push(b'\n');
            certificate.extend(key);
            let pem = String::from_utf8(certificate).map_err(|_| {
                AccessError::new(format!(
                    "the client certificate of context {context} is not PEM"
                ))
            })?;
            Some(Secret::new(pem))
        }
        (None, None) => None,
        _ => {
            return Err(AccessError::new(format!(
                "the user of context {context} has half a client certificate"
            ))
            .help("it takes client-certificate and client-key"));
        }
    };
    let credential = if let Some(token) = text(user, "token") {
        CredentialSource::Token(Secret::new(token))
    } else if let Some(path) = text(user, "tokenFile") {
        CredentialSource::File(folder.join(path))
    } else if !user["exec"].is_null() {
        CredentialSource::Program(CredentialProgram::of(folder, &user["exec"], context)?)
    } else {
        CredentialSource::Nothing
    };
    Ok((credential, identity))
}

/// `key-data` in Base64, or the file at `key`, relative to the kubeconfig.
fn material(folder: &Path, from: &Value, key: &str) -> Result<Option<Vec<u8>>, AccessError> {
    use base64::Engine as _;
    let inline = format!("{key}-data");
    if let Some(data) = text(from, &inline) {
        let data: String = data.split_whitespace().collect();
        let decoded = base64::engine::general_purpose::STANDARD.decode(data);
        return decoded
            .map(Some)
            .map_err(|_| AccessError::new(format!("{inline} of the kubeconfig is not Base64")));
    }
    let Some(path) = text(from, key) else {
        return Ok(None);
    };
    let path = folder.join(path);
    let read = std::fs::read(&path);
    read.map(Some)
        .map_err(|error| AccessError::file(&path, &error))
}

fn text(from: &Value, key: &str) -> Option<String> {
    let text = from[key].as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Kubeconfig {
        Kubeconfig {
            files: vec![("/home/a/.kube/config".into(), yaml::parse(text).unwrap())],
        }
    }

    const TWO: &str = "
current-context: one
contexts:
- {name: one, context: {cluster: c, user: u, namespace: bots}}
- {name: two, context: {cluster: c, user: v}}
clusters:
- name: c
  cluster: {server: 'https://10.0.0.1:6443', certificate-authority-data: LS0tCg==, tls-server-name: k}
users:
- {name: u, user: {token: abc}}
- {name: v, user: {tokenFile: tokens/v}}
";

    #[test]
    fn the_current_context_or_the_one_that_is_asked_for() {
        let one = of(TWO).context(None).unwrap();
        assert_eq!(
            (one.name.as_str(), one.server.as_str()),
            ("one", "https://10.0.0.1:6443")
        );
        assert_eq!(one.namespace.as_deref(), Some("bots"));
        assert_eq!(one.authority.as_deref(), Some(&b"---\n"[..]));
        assert!(
            matches!(one.credential, CredentialSource::Token(token) if token.expose() == "abc")
        );
        let two = of(TWO).context(Some("two")).unwrap();
        let folder = Path::new("/home/a/.kube/tokens/v");
        assert!(matches!(two.credential, CredentialSource::File(path) if path == folder));
        let error = of(TWO).context(Some("three")).unwrap_err();
        assert!(error.to_string().contains("three"), "{error}");
    }

    #[test]
    fn what_is_not_supported_is_said_and_never_passed_over() {
        for (what, user, cluster) in [
            ("insecure", "token: x", ", insecure-skip-tls-verify: true"),
            ("username", "username: a, password: hunter22", ""),
            ("auth-provider", "auth-provider: {name: gcp}", ""),
            ("half", "client-certificate-data: LS0tCg==", ""),
            ("not Base64", "client-key-data: '!!'", ""),
            ("as", "as: system:admin, token: x", ""),
        ] {
            let text = format!(
                "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
                 clusters: [{{name: a, cluster: {{server: 'https://a'{cluster}}}}}]\n\
                 users: [{{name: a, user: {{{user}}}}}]\n"
            );
            let error = of(&text).context(None).unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
            assert!(!error.contains("hunter22"), "{error}");
        }
        assert!(of("{}").context(None).is_err());
    }
}
