//! The user's own ssh configuration: names, keys, agent, and hosts on the way.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hermetic_sandbox::{Backend, SandboxPersistence};
use hermetic_ssh::{SshBackend, SshConfig};
use hermetic_types::InstallationId;

use crate::lab::{Lab, make, run, spec, stdout, until};

/// As a user would have it who wrote nothing but a name into ours.
fn by_name(lab: &Lab, name: &str, installation: &InstallationId) -> Arc<dyn Backend> {
    Arc::new(SshBackend::new(SshConfig {
        host: name.to_owned(),
        user: None,
        port: None,
        key: None,
        ..lab.config(installation)
    }))
}

async fn serves(lab: &Lab, name: &str) {
    let installation = InstallationId::random();
    let backend = by_name(lab, name, &installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let home = format!("{}\n", lab.home().display());
    assert_eq!(stdout(&run(&sandbox, "echo $HOME").await), home);
    backend.destroy(&spec.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_stands_for_host_port_user_and_key() {
    let Some(lab) = Lab::open() else { return };
    lab.write_client(&format!(
        "Host box\nHostName 127.0.0.1\nPort {}\nUser {}\nIdentityFile {}\nIdentitiesOnly yes",
        lab.port,
        lab.user,
        lab.at("key").display()
    ));
    serves(&lab, "box").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_keys_are_used_and_stay_with_it() {
    let Some(lab) = Lab::open() else { return };
    let named = format!(
        "Host box\nHostName 127.0.0.1\nPort {}\nUser {}\nIdentityFile {}\n",
        lab.port,
        lab.user,
        lab.at("nothing").display()
    );
    lab.write_client(&named);
    let nobody = by_name(&lab, "box", &InstallationId::random());
    let denied = nobody.list().await.unwrap_err();
    assert!(
        denied.to_string().contains("does not let us in"),
        "{denied}"
    );

    let agent = Agent::start(&lab).await;
    lab.write_client(&format!(
        "{named}IdentityAgent {}",
        lab.at("agent").display()
    ));
    // The agent alone has the key now.
    fs::remove_file(lab.at("key")).unwrap();
    serves(&lab, "box").await;
    drop(agent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_behind_another_is_reached_through_it() {
    let (Some(lab), Some(outer)) = (Lab::open(), Lab::open()) else {
        return;
    };
    lab.write_client(&format!(
        "Host inner\nPort {}\nProxyJump outer\nHost outer\nPort {}\nIdentityFile {}\nHost *\n\
         HostName 127.0.0.1\nUser {}\nIdentityFile {}\nStrictHostKeyChecking accept-new",
        lab.port,
        outer.port,
        outer.at("key").display(),
        lab.user,
        lab.at("key").display(),
    ));
    serves(&lab, "inner").await;
    let passed = fs::read_to_string(outer.at("log")).unwrap();
    assert!(passed.contains("Accepted publickey"), "{passed}");
    // Only passed through: nothing of ours is there.
    assert!(!outer.home().join(".hermetic").exists());
}

/// An agent with the lab's key.
struct Agent(Child);

impl Agent {
    async fn start(lab: &Lab) -> Self {
        let socket = lab.at("agent");
        let child = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let agent = Self(child);
        until("the agent takes the key", || {
            Command::new("ssh-add")
                .arg("-q")
                .arg(lab.at("key"))
                .env("SSH_AUTH_SOCK", &socket)
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|added| added.success())
        })
        .await;
        agent
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
