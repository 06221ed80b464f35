//! Who we are to a registry: what `docker login` left in docker's own folder.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// What images without a registry in their name are pulled from, as docker writes it.
const HUB: &str = "https://index.docker.io/v1/";
/// A helper may ask a key ring, and nobody is there to unlock one.
const CREDENTIAL_HELPER_TIMEOUT: Duration = Duration::from_secs(10);

/// Nothing where nobody logged in; the registry then says whether that will do.
pub(crate) async fn of(folder: &Path, image: &str) -> Option<DockerCredentials> {
    let written = std::fs::read(folder.join("config.json")).ok()?;
    let config: Value = serde_json::from_slice(&written).ok()?;
    let registry = registry(image);
    // A helper before the file, as docker's own client does it: where there is one, what stands in
    // the file is old.
    if let Some(helper) = helper(&config, registry) {
        let program = format!("docker-credential-{helper}");
        return match timeout(CREDENTIAL_HELPER_TIMEOUT, ask(&program, registry)).await {
            Ok(found) => found,
            Err(_) => {
                tracing::warn!(program, "it does not answer; pulling without a login");
                None
            }
        };
    }
    let auths = config.get("auths")?.as_object()?;
    let (_, login) = auths
        .iter()
        .find(|(name, _)| host(name) == host(registry))?;
    read(login, registry)
}

/// The registry of an image, as docker's file names it.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
        _ => HUB,
    }
}

/// Older files have whole addresses for names.
fn host(name: &str) -> &str {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').next().unwrap_or(name)
}

fn helper<'a>(config: &'a Value, registry: &str) -> Option<&'a str> {
    let own = config.get("credHelpers").and_then(|all| all.get(registry));
    let name = own.or_else(|| config.get("credsStore"))?.as_str()?;
    // It becomes part of a program's name, and of no path.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

fn read(login: &Value, registry: &str) -> Option<DockerCredentials> {
    let text = |name: &str| login.get(name)?.as_str().map(str::to_owned);
    let decoded = text("auth").and_then(|auth| STANDARD.decode(auth).ok());
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
    let (username, password) = match pair {
        Some((user, word)) => (user.to_owned(), word.trim_end_matches('\0').to_owned()),
        None => (text("username")?, text("password")?),
    };
    Some(DockerCredentials {
        username: Some(username),
        password: Some(password),
        identitytoken: text("identitytoken"),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    })
}

/// As docker asks: the registry on stdin, the login as JSON on stdout.
async fn ask(program: &str, registry: &str) -> Option<DockerCredentials> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .inspect_err(|error| tracing::warn!(program, %error, "pulling without a login"))
        .ok()?;
    let mut stdin = child.stdin.take()?;
    stdin.write_all(registry.as_bytes()).await.ok()?;
    // Helpers read to the end of their input.
    drop(stdin);
    let output = child.wait_with_output().await.ok()?;
    let said: Value = serde_json::from_slice(&output.stdout).ok()?;
    let text = |name: &str| said.get(name)?.as_str().map(str::to_owned);
    let (username, secret) = (text("Username")?, text("Secret")?);
    let serveraddress = Some(registry.to_owned());
    Some(if username == "<token>" {
        DockerCredentials {
            identitytoken: Some(secret),
            serveraddress,
            ..DockerCredentials::default()
        }
    } else {
        DockerCredentials {
            username: Some(username),
            password: Some(secret),
            serveraddress,
            ..DockerCredentials::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    async fn login(config: Value, image: &str) -> Option<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        let found = of(folder.path(), image).await?;
        Some((found.username?, found.password?))
    }

    fn pair(user: &str, word: &str) -> Option<(String, String)> {
        Some((user.to_owned(), word.to_owned()))
    }

    #[tokio::test]
    async fn a_login_is_for_its_registry_only() {
        let config = json!({"auths": {
            "here.test:5000": {"auth": STANDARD.encode("alice:s3cr:et")},
            "https://index.docker.io/v1/": {"auth": STANDARD.encode("bob:b")},
            "https://old.test/v1/": {"username": "carol", "password": "c"},
            "broken.test": {"auth": "%"},
        }});
        let of = |image: &'static str| login(config.clone(), image);
        assert_eq!(of("here.test:5000/x:1").await, pair("alice", "s3cr:et"));
        assert_eq!(of("debian:12").await, pair("bob", "b"));
        assert_eq!(of("library/debian").await, pair("bob", "b"));
        assert_eq!(of("old.test/x").await, pair("carol", "c"));
        for image in [
            "here.test/x",
            "there.test/here.test:5000/x",
            "broken.test/x",
        ] {
            assert_eq!(login(config.clone(), image).await, None, "{image}");
        }
    }

    #[tokio::test]
    async fn a_helper_is_asked_and_its_name_is_no_path() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker-credential-test");
        let script = "#!/bin/sh\n[ \"$1\" = get ] && read -r at || [ -n \"$at\" ] && \
            printf '{\"ServerURL\":\"%s\",\"Username\":\"dave\",\"Secret\":\"for %s\"}' \"$at\" \"$at\"\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = ask(program.to_str().unwrap(), "here.test").await.unwrap();
        assert_eq!(found.username.as_deref(), Some("dave"));
        assert_eq!(found.password.as_deref(), Some("for here.test"));

        let config =
            json!({"credsStore": "all", "credHelpers": {"one.test": "../one", "two.test": "two"}});
        assert_eq!(helper(&config, "two.test"), Some("two"));
        assert_eq!(helper(&config, "three.test"), Some("all"));
        assert_eq!(helper(&config, "one.test"), None);
    }
}
