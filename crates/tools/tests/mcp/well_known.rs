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
    reads_what_it_has(&lab, &person).await;
    lab.close().await;
}

/// Its resources and prompts, by the tools that Hermes has for them.
async fn reads_what_it_has(lab: &Lab, person: &Person) {
    let listed = lab
        .calls(person, "mcp_everything_list_resources", json!({}))
        .await;
    let first = text(&listed).lines().next().unwrap().to_owned();
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    let wanted = json!({"uri": first["uri"]});
    let read = lab
        .calls(person, "mcp_everything_read_resource", wanted)
        .await;
    assert!(!text(&read).trim().is_empty(), "{read}");
    let missing = json!({"uri": "nothing://there"});
    let read = lab
        .calls(person, "mcp_everything_read_resource", missing)
        .await;
    assert!(read.get("error").is_some(), "{read}");
    let listed = lab
        .calls(person, "mcp_everything_list_prompts", json!({}))
        .await;
    let lines = text(&listed).lines();
    let prompts = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut simple =
        prompts.filter(|prompt| prompt["arguments"].as_array().is_none_or(Vec::is_empty));
    let simple = simple.next_back().expect("one without arguments");
    let wanted = json!({"name": simple["name"]});
    let prompt = lab.calls(person, "mcp_everything_get_prompt", wanted).await;
    assert!(text(&prompt).starts_with("user:"), "{prompt}");
    // They are judged and recorded like its tools.
    let decided = person.decided().join("\n");
    assert!(
        decided.contains("run mcp_everything_read_resource"),
        "{decided}"
    );
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
