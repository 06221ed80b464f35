//! A server of our own that does what it should not, in the sandbox.

use std::time::Duration;

use hermetic_tools::{McpServerPlace, McpServerSettings};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Person, Stopper, error, inside, lab, text};
use crate::room::{Lab, PATIENCE, SECRET, Wishes};

const SERVER: &str = include_str!("hostile.py");

fn server(name: &str, manner: &str) -> McpServerSettings {
    // By its environment, so that what it is told stands in one command line and in no other.
    let start = format!(
        "printf %s \"$SOURCE\" >/tmp/{manner}.py; exec python3 /tmp/{manner}.py {manner} /tmp/changed"
    );
    let mut server = inside(name, &["sh", "-c", &start]);
    if let McpServerPlace::Sandbox { env, .. } = &mut server.place {
        env.insert("SOURCE".to_owned(), SERVER.to_owned());
    }
    server.timeout = Duration::from_secs(3);
    server.connect_timeout = Duration::from_secs(5);
    server
}

#[tokio::test]
async fn a_server_inside_is_started_once_and_its_calls_are_recorded() {
    const TEST: &str = "mcp::hostile::a_server_inside_is_started_once_and_its_calls_are_recorded";
    let Some(lab) = lab(TEST, vec![server("plain", "plain-marker")]).await else {
        return;
    };
    let person = Person::default();
    assert!(lab.offered().is_empty(), "nothing before somebody asks");
    assert!(lab.prepare(&person).await.is_empty());
    assert_eq!(lab.offered(), ["mcp_plain_echo"]);
    assert!(lab.prepare(&person).await.is_empty());
    for said in ["one", "two"] {
        let answer = lab
            .calls(&person, "mcp_plain_echo", json!({"text": said}))
            .await;
        assert_eq!(text(&answer), said);
    }
    assert_eq!(lab.running("plain-marker").await, 1);
    let decided = person.decided();
    assert!(decided[0].starts_with("run sh -c "), "{decided:?}");
    assert!(
        decided[1].starts_with("run mcp-tools plain "),
        "{decided:?}"
    );
    assert_eq!(decided[2], "run mcp_plain_echo {\"text\":\"one\"}");
    assert_eq!(decided[3], "run mcp_plain_echo {\"text\":\"two\"}");
    assert_eq!(decided.len(), 4, "{decided:?}");
    assert!(person.asked().is_empty());
    let secret = lab
        .calls(&person, "mcp_plain_echo", json!({"text": SECRET}))
        .await;
    assert!(!secret.to_string().contains(SECRET), "{secret}");
    lab.close().await;
}

#[tokio::test]
async fn a_server_that_changes_its_tools_is_not_used_before_somebody_said_yes() {
    const TEST: &str =
        "mcp::hostile::a_server_that_changes_its_tools_is_not_used_before_somebody_said_yes";
    let Some(mut lab) = lab(TEST, vec![server("plain", "changing")]).await else {
        return;
    };
    let no = Person::default();
    lab.prepare(&no).await;
    assert_eq!(lab.offered(), ["mcp_plain_echo"]);
    // The call itself is answered; after it the server says that it has others.
    let first = lab
        .calls(&no, "mcp_plain_echo", json!({"text": "hi"}))
        .await;
    assert_eq!(text(&first), "hi");
    let mut refused = lab
        .calls(&no, "mcp_plain_echo", json!({"text": "hi"}))
        .await;
    if refused.get("result").is_some() {
        // Its word that they changed came after our question.
        refused = lab
            .calls(&no, "mcp_plain_echo", json!({"text": "hi"}))
            .await;
    }
    assert!(error(&refused).contains("offers other tools"), "{refused}");
    let asked = no.asked();
    assert!(
        asked[0].contains("new: more; described otherwise: echo"),
        "{asked:?}"
    );
    lab.until("it was ended", async || lab.running("changing").await == 0)
        .await;

    // Neither a restart of the server nor of the gateway makes it a first sight.
    let again = lab
        .calls(&no, "mcp_plain_echo", json!({"text": "hi"}))
        .await;
    assert!(error(&again).contains("offers other tools"), "{again}");
    let wishes = Wishes {
        mcp: vec![server("plain", "changing")],
        ..Wishes::default()
    };
    lab.restart(&wishes).await;
    let told = lab.prepare(&no).await;
    assert!(told[0].contains("offers other tools"), "{told:?}");
    assert!(lab.offered().is_empty());
    lab.restart(&wishes).await;
    let yes = Person::saying_yes();
    assert!(lab.prepare(&yes).await.is_empty());
    assert_eq!(yes.asked().len(), 1);
    assert_eq!(lab.offered(), ["mcp_plain_echo", "mcp_plain_more"]);
    let answer = lab
        .calls(&yes, "mcp_plain_more", json!({"text": "x"}))
        .await;
    assert_eq!(text(&answer), "x");
    assert!(yes.asked().is_empty(), "asked once for what was shown");
    lab.close().await;
}

#[tokio::test]
async fn a_stop_at_the_question_about_changed_tools_is_no_yes() {
    const TEST: &str = "mcp::hostile::a_stop_at_the_question_about_changed_tools_is_no_yes";
    let Some(lab) = lab(TEST, vec![server("plain", "changing")]).await else {
        return;
    };
    let no = Person::default();
    lab.prepare(&no).await;
    let hi = json!({"text": "hi"});
    lab.calls(&no, "mcp_plain_echo", hi.clone()).await;
    // Once its word that they changed has come, somebody is asked.
    let stopper = Stopper(CancellationToken::new());
    lab.until("somebody was asked", async || {
        let toolbox = lab.kit.toolbox(&*lab.room, &stopper);
        let called = toolbox.call("mcp_plain_echo", hi.as_object().unwrap(), &stopper.0);
        let answered = tokio::time::timeout(PATIENCE, called).await;
        answered.expect("the call ends").expect("a tool");
        stopper.0.is_cancelled()
    })
    .await;
    assert_eq!(lab.offered(), ["mcp_plain_echo"]);
    let refused = lab.calls(&no, "mcp_plain_echo", hi).await;
    assert!(error(&refused).contains("offers other tools"), "{refused}");
    assert_eq!(no.asked().len(), 1, "it is asked again");
    lab.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_and_keeps_no_turn() {
    const TEST: &str = "mcp::hostile::a_server_that_does_not_start_is_told_and_keeps_no_turn";
    let servers = vec![
        server("good", "greets"),
        server("silent", "never-speaks"),
        server("future", "future"),
        inside("missing", &["/no/such/program"]),
        server("pages", "endless-pages"),
    ];
    let Some(lab) = lab(TEST, servers).await else {
        return;
    };
    let person = Person::default();
    let told = lab.prepare(&person).await.join("\n");
    // It did not start, or did not answer: both have the same time.
    let silent = told
        .lines()
        .find(|line| line.contains("\"silent\" is not available here"));
    assert!(
        silent.is_some_and(|line| line.contains("within 5 s")),
        "{told}"
    );
    assert!(
        told.contains("\"future\" is not available here: it speaks version"),
        "{told}"
    );
    assert!(told.contains("\"missing\" is not available"), "{told}");
    assert_eq!(lab.offered(), ["mcp_good_echo", "mcp_pages_echo"]);
    assert!(lab.prepare(&person).await.is_empty(), "tried again at once");
    let answer = lab
        .calls(&person, "mcp_good_echo", json!({"text": "still here"}))
        .await;
    assert_eq!(text(&answer), "still here");
    lab.until("the silent one has ended", async || {
        lab.running("never-speaks").await == 0
    })
    .await;
    lab.close().await;
}

#[tokio::test]
async fn a_server_that_breaks_in_a_call_breaks_that_call_alone() {
    const TEST: &str = "mcp::hostile::a_server_that_breaks_in_a_call_breaks_that_call_alone";
    let broken = [
        ("hang-in-call", "it did not answer within 3 s"),
        ("die-in-call", "the end"),
        ("long-line", "longer than any message may be"),
        ("flood", ""),
        ("garbage", "something else than MCP"),
        ("fails", "it went wrong: hi"),
    ];
    let mut servers: Vec<_> = broken
        .iter()
        .map(|(manner, _)| server(manner, manner))
        .collect();
    servers.push(server("good", "good"));
    let Some(lab) = lab(TEST, servers).await else {
        return;
    };
    let person = Person::default();
    assert!(lab.prepare(&person).await.is_empty());
    for (manner, expected) in broken {
        let tool = format!("mcp_{}_echo", manner.replace('-', "_"));
        let answer = lab.calls(&person, &tool, json!({"text": "hi"})).await;
        let words = error(&answer);
        assert!(words.contains(expected), "{manner}: {words}");
        assert!(words.len() < 4000, "{manner}: {}", words.len());
        let good = lab
            .calls(&person, "mcp_good_echo", json!({"text": "on"}))
            .await;
        assert_eq!(text(&good), "on", "after {manner}");
    }
    // One that hangs is not asked again, and not kept.
    lab.until("the one that hangs was ended", async || {
        lab.running("hang-in-call").await == 0
    })
    .await;
    lab.close().await;
}

#[tokio::test]
async fn results_are_bounded_and_servers_get_nothing_of_us() {
    const TEST: &str = "mcp::hostile::results_are_bounded_and_servers_get_nothing_of_us";
    let servers = vec![
        server("large", "large"),
        server("asks", "asks"),
        server("many", "many"),
    ];
    let Some(lab) = lab(TEST, servers).await else {
        return;
    };
    let person = Person::default();
    lab.prepare(&person).await;
    let offered = lab.offered();
    assert_eq!(
        offered
            .iter()
            .filter(|name| name.starts_with("mcp_many_"))
            .count(),
        64
    );
    let large = lab.calls(&person, "mcp_large_echo", json!({})).await;
    assert!(text(&large).len() < 51_000, "{}", text(&large).len());
    assert!(text(&large).contains("2950000 characters left out"));
    let asks = lab.calls(&person, "mcp_asks_echo", json!({})).await;
    assert_eq!(text(&asks), "result error error error");
    lab.close().await;
}

#[tokio::test]
async fn a_call_that_is_stopped_is_answered_at_once() {
    const TEST: &str = "mcp::hostile::a_call_that_is_stopped_is_answered_at_once";
    let mut hanging = server("slow", "hang-in-call");
    hanging.timeout = Duration::from_secs(3600);
    let Some(lab) = lab(TEST, vec![hanging]).await else {
        return;
    };
    lab.prepare(&Person::default()).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let answer = lab
        .call_until("mcp_slow_echo", json!({"text": "x"}), &stop)
        .await;
    assert!(error(&answer).contains("interrupted"), "{answer}");
    lab.close().await;
}

#[tokio::test]
async fn the_operators_deny_and_filters_hold_for_tools_of_servers() {
    const TEST: &str = "mcp::hostile::the_operators_deny_and_filters_hold_for_tools_of_servers";
    let mut wishes = Wishes::default();
    wishes.rules.deny = vec!["mcp_plain_echo*".to_owned()];
    let mut hidden = server("hidden", "hidden");
    hidden.exclude = vec!["echo".to_owned()];
    wishes.mcp = vec![server("plain", "plain"), hidden];
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    lab.prepare(&person).await;
    assert_eq!(lab.offered(), ["mcp_plain_echo"]);
    let answer = lab
        .calls(&person, "mcp_plain_echo", json!({"text": "x"}))
        .await;
    assert!(error(&answer).contains("forbade"), "{answer}");
    let decided = person.decided();
    let last = decided.last().unwrap();
    assert!(last.starts_with("refused mcp_plain_echo"), "{last}");
    lab.close().await;
}
