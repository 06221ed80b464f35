//! The page that tells what became of Hermes' tools, beside what a model is really offered.

use std::collections::BTreeSet;

use hermetic_testkit::model::Reply;

use crate::lab::{ALICE, Lab};

/// What Hermes 0.19 has on every messaging platform.
const OF_HERMES: [&str; 52] = [
    "web_search",
    "web_extract",
    "terminal",
    "process",
    "read_terminal",
    "close_terminal",
    "read_file",
    "write_file",
    "patch",
    "search_files",
    "vision_analyze",
    "image_generate",
    "skills_list",
    "skill_view",
    "skill_manage",
    "browser_navigate",
    "browser_snapshot",
    "browser_click",
    "browser_type",
    "browser_scroll",
    "browser_back",
    "browser_press",
    "browser_get_images",
    "browser_vision",
    "browser_console",
    "browser_cdp",
    "browser_dialog",
    "text_to_speech",
    "todo",
    "memory",
    "session_search",
    "clarify",
    "execute_code",
    "delegate_task",
    "cronjob",
    "ha_list_entities",
    "ha_get_state",
    "ha_list_services",
    "ha_call_service",
    "kanban_show",
    "kanban_list",
    "kanban_complete",
    "kanban_block",
    "kanban_heartbeat",
    "kanban_comment",
    "kanban_create",
    "kanban_link",
    "kanban_unblock",
    "kanban_attach",
    "kanban_attach_url",
    "kanban_attachments",
    "computer_use",
];

/// The rows of the page's first table: tool and state.
fn told_on_the_page() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../../../docs/hermes-parity.md");
    let (_, table) = page.split_once("## Tools").unwrap();
    let (table, _) = table.split_once("## Commands").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let read = rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        (cells[1].trim_matches('`'), cells[2])
    });
    read.collect()
}

#[tokio::test]
async fn the_page_tells_of_every_tool_of_hermes_what_became_of_it() {
    // Nobody is asked: it only has to be configured.
    let config = "image_gen: {provider: openai}\ntts: {provider: openai}\n";
    let access = "SEARXNG_URL=http://127.0.0.1:9\nTELEGRAM_ALLOWED_USERS=7,8";
    let builder = Lab::builder().config(config).access(access);
    let lab = builder.script([Reply::streams(&["hello"])]).start().await;
    lab.ask(ALICE, "hello").await;
    let asked = lab.model.received().remove(0);
    let offered: BTreeSet<_> = asked.body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    let rows = told_on_the_page();
    let named: BTreeSet<_> = rows.iter().map(|(tool, _)| *tool).collect();
    assert_eq!(rows.len(), named.len(), "a tool stands there twice");
    assert_eq!(named, BTreeSet::from(OF_HERMES));
    let mut here = BTreeSet::new();
    for (tool, state) in rows {
        match state {
            "there" | "different" => {
                here.insert(tool.to_owned());
            }
            "not here" => {}
            other => panic!("{tool}: {other:?}"),
        }
    }
    assert_eq!(offered, here);
}
