//! Commands on a remote host, by the program itself.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::hermetic::Hermetic;
use crate::ssh_lab::{Lab, until_gone};

fn at(lab: &Lab) -> Hermetic {
    let config = format!(
        "terminal: {{ssh_host: 127.0.0.1, ssh_user: {}, ssh_port: {}, ssh_key: {}, ssh_config: {}}}\n",
        lab.user,
        lab.port,
        lab.at("key").display(),
        lab.at("ssh_config").display(),
    );
    Hermetic::with(&config).variable("PATH", "/usr/bin:/bin")
}

#[test]
fn exec_runs_there_and_passes_the_code_on() {
    let Some(lab) = Lab::open() else { return };
    let hermetic = at(&lab);
    let ended = hermetic.run(&["exec", "--backend", "ssh", "--", "sh", "-c", "pwd; exit 5"]);
    assert_eq!(ended.code, 5, "{}", ended.err);
    let home = lab.home().join(".hermetic").display().to_string();
    assert!(ended.out.starts_with(&home), "{}", ended.out);
    assert!(ended.err.contains("not in a sandbox"), "{}", ended.err);
    let refused = hermetic.run(&["exec", "--backend", "ssh", "--here", "--", "true"]);
    assert_eq!(refused.code, 125, "{}", refused.err);
}

#[test]
fn doctor_says_what_it_found() {
    let Some(lab) = Lab::open() else { return };
    let hermetic = at(&lab);
    let doctor = hermetic.run(&["doctor", "--backend", "ssh"]);
    assert_eq!(doctor.code, 0, "{}", doctor.out);
    assert!(doctor.out.contains("host key checked"), "{}", doctor.out);
}

#[tokio::test]
async fn a_killed_exec_leaves_nothing_on_either_side() {
    const MARKER: &str = "86461.5";
    let Some(lab) = Lab::open() else { return };
    let folder = lab.at("tmp");
    std::fs::create_dir(&folder).unwrap();
    let hermetic = at(&lab).variable("TMPDIR", &folder.display().to_string());
    let mut exec = hermetic
        .command(&[
            "exec",
            "--backend",
            "ssh",
            "--",
            "sh",
            "-c",
            &format!("echo up; sleep {MARKER}"),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(exec.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    exec.kill().unwrap();
    exec.wait().unwrap();
    until_gone(MARKER).await;
    until_gone(&lab.at("ssh_config").display().to_string()).await;
    until_gone(&folder.display().to_string()).await;
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
