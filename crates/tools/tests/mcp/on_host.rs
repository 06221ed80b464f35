//! Servers on this machine, unsealed. They need no sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_policy::{JudgementContext, Policy, PolicyRules};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_tools::{
    CheckedServer, Held, McpServerPlace, McpServerSettings, McpServers, NoSandbox, ToolWorkplace,
};
use hermetic_types::{BackendDescription, BackendKind, ConversationKey, Secret};
use tokio_util::sync::CancellationToken;

use super::{Person, inside};
use crate::room::{PATIENCE, SECRET};

/// Tells its one tool, and leaves.
const LEAVES: &str = r#"
read -r hello
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
read -r initialized
read -r list
echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo"}]}}'
"#;

/// A conversation without a sandbox.
#[derive(Debug)]
struct Nowhere(ConversationKey);

impl ToolWorkplace for Nowhere {
    fn conversation(&self) -> &ConversationKey {
        &self.0
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        futures::future::ready(Err(NoSandbox("there is none"))).boxed()
    }
}

fn servers(words: &[&str]) -> McpServers {
    let server = McpServerSettings {
        place: McpServerPlace::Host {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::new(),
        },
        ..inside("here", &[])
    };
    McpServers::new(
        vec![server],
        Arc::new(Policy::new(PolicyRules::default())),
        JudgementContext::new(BackendDescription::sealed(BackendKind::Native), "/", "/"),
        JudgementContext::new(BackendDescription::judged(BackendKind::Local), "/", "/"),
        Redactor::new([Secret::new(SECRET)], RedactorSettings::default()),
        None,
        1000,
    )
}

async fn check(servers: &McpServers, conversation: &str, person: &Person) -> CheckedServer {
    let place = Nowhere(ConversationKey::new(conversation));
    let stop = CancellationToken::new();
    let checked = tokio::time::timeout(PATIENCE, servers.check(&place, person, &stop)).await;
    checked.expect("it is over in time").remove(0)
}

#[tokio::test]
async fn a_program_that_ended_takes_no_place_on_the_host() {
    let servers = servers(&["/bin/sh", "-c", LEAVES]);
    let person = Person::default();
    for conversation in 0..40 {
        let conversation = format!("agent:main:test:dm:{conversation}");
        let used = tokio::time::timeout(PATIENCE, async {
            loop {
                match check(&servers, &conversation, &person).await.tools {
                    Ok(tools) => return tools,
                    // The last few may not have ended yet.
                    Err(why) => assert!(why.contains("too many servers"), "{why}"),
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let tools = used.await.expect("a place is free again");
        assert_eq!(tools, ["mcp_here_echo"]);
    }
}

#[tokio::test]
async fn a_program_on_the_host_is_judged_and_recorded_as_there() {
    let option = format!("--api-key={SECRET}");
    let person = Person::default();
    let good = servers(&["/bin/sh", "-c", LEAVES, "server", &option]);
    let checked = check(&good, "agent:main:test:dm:1", &person).await;
    assert_eq!(checked.tools.unwrap(), ["mcp_here_echo"]);
    let decided = person.decided();
    assert_eq!(decided.len(), 2, "{decided:?}");
    assert!(
        decided[0].starts_with("run on the host /bin/sh -c"),
        "{decided:?}"
    );
    assert!(decided[0].contains("server --api-key="), "{decided:?}");
    assert!(!decided[0].contains(SECRET), "{decided:?}");
    assert!(
        decided[1].starts_with("run on the host mcp-tools here"),
        "{decided:?}"
    );
    // The floor holds for it, which no sandbox needs. There is no such program, should it be started.
    let wipes = servers(&["/nowhere/rm", "-rf", "/"]);
    let checked = check(&wipes, "agent:main:test:dm:1", &person).await;
    assert!(checked.tools.is_err(), "{checked:?}");
    let decided = person.decided();
    assert_eq!(decided, ["refused on the host /nowhere/rm -rf /"]);
}
