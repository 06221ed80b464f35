//! Git over ssh out of a sandbox, by a rule for plain TCP and no netcat.

use std::process::Command;

use crate::hermetic::Hermetic;
use crate::ssh_lab::Lab;

#[test]
fn git_clones_over_ssh_from_a_host_that_a_rule_names() {
    let test = "git_clones_over_ssh_from_a_host_that_a_rule_names";
    let Some(lab) = Lab::open() else { return };
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes(test) {
        return;
    }
    let repository = lab.at("repository");
    let made = Command::new("git")
        .args(["init", "-q", "--bare", "-b", "main"])
        .arg(&repository)
        .status();
    if !made.is_ok_and(|ended| ended.success()) {
        eprintln!("SKIP: {test}: git cannot make a repository here");
        return;
    }
    // It belongs to whoever runs the test, and is served by whoever logs in.
    let served = "[safe]\n\tdirectory = *\n";
    std::fs::write(lab.home().join(".gitconfig"), served).unwrap();
    let url = format!(
        "ssh://{}@localhost:{}{}",
        lab.user,
        lab.port,
        repository.display()
    );
    let script = format!(
        "command -v git ssh bash >/dev/null || exit 77; umask 077; printf '%s' \"$KEY\" > key; \
         export GIT_SSH_COMMAND=\"$GIT_SSH_COMMAND -i $PWD/key -o UserKnownHostsFile=$PWD/known\"; \
         git ls-remote --exit-code {url}; echo $?"
    );
    let key = std::fs::read_to_string(lab.at("key")).unwrap();
    let key = format!("KEY={key}");
    let clone = |rule: &str| {
        let words = [
            "exec", "--env", &key, "--allow", rule, "--", "bash", "-c", &script,
        ];
        hermetic.run(&words)
    };
    let there = format!("tcp://localhost:{} in 127.0.0.0/8,::1/128", lab.port);
    let cloned = clone(&there);
    if cloned.code == 77 {
        eprintln!("SKIP: {test}: git, ssh or bash is not in the sandbox");
        return;
    }
    // An empty repository: the connection stood, git spoke, and there is nothing to list.
    assert_eq!(cloned.out, "2\n", "{}", cloned.err);
    let refused = clone("elsewhere.test");
    assert!(
        refused.err.contains("is not on the allowlist"),
        "{}",
        refused.err
    );
}
