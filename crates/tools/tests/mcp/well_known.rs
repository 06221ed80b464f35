//! Servers that others wrote, inside a native sandbox that reaches nothing.
//!
//! Without node, npm, python or a package these tests are skipped, aloud.

use hermetic_testkit::{npm, pypi};
use hermetic_tools::McpServerPlace;
use serde_json::json;

use super::{Person, inside, text};
use crate::room::{Lab, Wishes};

#[tokio::test]
async fn the_reference_server_of_everything() {
    const TEST: &str = "mcp::well_known::the_reference_server_of_everything";
    let name = "@modelcontextprotocol/server-everything";
    let folder = match npm::package(name, "2026.8.31").await {
        Ok(folder) => folder,
        Err(why) => return eprintln!("SKIP: {TEST}: {why}"),
    };
    let program = folder.join("node_modules").join(name).join("dist/index.js");
    let words = ["node", program.to_str().unwrap()];
    let wishes = Wishes {
        mcp: vec![inside("everything", &words)],
        shows: vec![folder],
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    assert_eq!(lab.prepare(&person).await, [""; 0]);
    let offered = lab.offered();
    assert!(
        offered.contains(&"mcp_everything_echo".to_owned()),
        "{offered:?}"
    );
    let answer = lab
        .calls(&person, "mcp_everything_echo", json!({"message": "hello"}))
        .await;
    assert!(text(&answer).contains("hello"), "{answer}");
    let sum = offered
        .iter()
        .find(|name| name.ends_with("sum"))
        .expect("it adds");
    let answer = lab.calls(&person, sum, json!({"a": 2, "b": 40})).await;
    assert!(text(&answer).contains("42"), "{answer}");
    lab.close().await;
}

#[tokio::test]
async fn the_reference_server_of_files() {
    const TEST: &str = "mcp::well_known::the_reference_server_of_files";
    let name = "@modelcontextprotocol/server-filesystem";
    let folder = match npm::package(name, "2026.8.31").await {
        Ok(folder) => folder,
        Err(why) => return eprintln!("SKIP: {TEST}: {why}"),
    };
    let program = folder.join("node_modules").join(name).join("dist/index.js");
    let words = ["node", program.to_str().unwrap(), "/workspace"];
    let wishes = Wishes {
        mcp: vec![inside("files", &words)],
        shows: vec![folder],
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    assert_eq!(lab.prepare(&person).await, [""; 0]);
    let write = json!({"path": "/workspace/note.txt", "content": "by a server"});
    let answer = lab.calls(&person, "mcp_files_write_file", write).await;
    assert!(answer.get("error").is_none(), "{answer}");
    // It is the conversation's own workspace.
    assert_eq!(lab.says("cat /workspace/note.txt").await, "by a server");
    let outside = json!({"path": "/etc/passwd"});
    let answer = lab
        .calls(&person, "mcp_files_read_text_file", outside)
        .await;
    assert!(answer.get("error").is_some(), "{answer}");
    lab.close().await;
}

#[tokio::test]
async fn the_reference_server_of_time() {
    const TEST: &str = "mcp::well_known::the_reference_server_of_time";
    let found = pypi::package("mcp-server-time", "2026.10.19", "mcp_server_time").await;
    let (packages, python) = match found {
        Ok(found) => found,
        Err(why) => return eprintln!("SKIP: {TEST}: {why}"),
    };
    let program = python.to_str().unwrap();
    let mut server = inside(
        "time",
        &[program, "-m", "mcp_server_time", "--local-timezone", "UTC"],
    );
    if let McpServerPlace::Sandbox { env, .. } = &mut server.place {
        env.insert(
            "PYTHONPATH".to_owned(),
            packages.to_str().unwrap().to_owned(),
        );
    }
    let mut shows = vec![packages];
    // One that is not the machine's own has to be shown as well.
    if !python.starts_with("/usr") {
        shows.extend(python.ancestors().nth(2).map(Into::into));
    }
    let wishes = Wishes {
        mcp: vec![server],
        shows,
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    assert_eq!(lab.prepare(&person).await, [""; 0]);
    let ask = json!({"timezone": "Europe/Paris"});
    let answer = lab.calls(&person, "mcp_time_get_current_time", ask).await;
    assert!(text(&answer).contains("Europe/Paris"), "{answer}");
    let wrong = json!({"timezone": "Nowhere/None"});
    let answer = lab.calls(&person, "mcp_time_get_current_time", wrong).await;
    assert!(answer.get("error").is_some(), "{answer}");
    lab.close().await;
}
