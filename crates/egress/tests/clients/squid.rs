//! Squid, for those who keep it.

use std::path::Path;

use hermetic_egress::RulesText;
use tokio::process::Command;
use tokio::time::timeout;

use super::out;
use crate::lab::TEST_TIMEOUT;

#[tokio::test]
async fn squid_reads_the_list_without_a_word() {
    use hermetic_egress::deploy::squid_allowlist;
    let test = "squid_reads_the_list_without_a_word";
    let squid = Path::new("/usr/sbin/squid");
    if !squid.is_file() {
        eprintln!("SKIP: {test}: squid is not installed");
        return;
    }
    let rules = RulesText {
        deny: vec!["bad.example.org".into(), "worse.example.org:8443".into()],
        presets: ["python", "debian", "github"].map(str::to_owned).into(),
        ..RulesText::allowing(["a.example.org", "*.example.org", "a.example.org:8443"])
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("squid.conf");
    let text = squid_allowlist(&rules, &[]).unwrap();
    std::fs::write(&file, format!("http_port 127.0.0.1:3128\n{text}")).unwrap();
    let mut command = Command::new(squid);
    command
        .args(["-k", "parse", "-f"])
        .arg(&file)
        .kill_on_drop(true);
    let output = timeout(TEST_TIMEOUT, command.output())
        .await
        .expect("squid hangs")
        .unwrap();
    assert!(output.status.success(), "{}", out(&output));
    let complaints: Vec<String> = out(&output)
        .lines()
        .filter(|line| {
            ["WARNING", "ERROR", "FATAL"]
                .iter()
                .any(|word| line.contains(word))
        })
        .map(str::to_owned)
        .collect();
    assert_eq!(complaints, [""; 0], "{text}");
}
