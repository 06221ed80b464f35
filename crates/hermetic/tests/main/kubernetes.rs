//! Kubernetes, as somebody at a keyboard meets it. Nothing here reaches further than loopback.

use std::path::Path;

use hermetic_testkit::acp::put_in_place_of_opencode;

use crate::hermetic::{Ended, Hermetic};
use crate::kubernetes_cluster::{NAMESPACE, Server, TOKEN, lacking};

fn row(ended: &Ended) -> serde_json::Value {
    let rows = ended.json();
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(|row| row["backend"] == "kubernetes")
        .unwrap()
        .clone()
}

/// Each command of the program is a process of its own, so the cluster goes on beside it.
async fn run(hermetic: &Hermetic, words: &[&str]) -> Ended {
    tokio::task::block_in_place(|| hermetic.run(words))
}

/// Commands run in that cluster, as a file in the folder says.
fn config(server: &Server, folder: &Path) -> String {
    let kubeconfig = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a, namespace: {NAMESPACE}}}}}], \
         clusters: [{{name: a, cluster: {{server: '{}'}}}}], users: [{{name: a, user: {{token: {TOKEN}}}}}]}}",
        server.url
    );
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    format!(
        "terminal: {{backend: kubernetes, kubernetes_kubeconfig: '{}', kubernetes_image: 'debian:12'}}\n",
        path.display()
    )
}

#[test]
fn no_cluster_is_said_with_what_to_do_and_so_is_one_that_is_away() {
    let without = row(&Hermetic::new().run(&["backends", "--json"]));
    assert_eq!(without["available"], false);
    let remedy = without["notes"][0]["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("terminal.kubernetes_kubeconfig"),
        "{remedy}"
    );

    // Nobody listens on port 1 of this machine.
    let kubeconfig = "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
                      clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], \
                      users: [{name: a, user: {token: hunter2}}]}";
    let hermetic = Hermetic::with("terminal: {kubernetes_accept_risks: [everything]}\n");
    let mistaken = row(&hermetic
        .file("kubeconfig", kubeconfig)
        .run(&["backends", "--json"]));
    let what = mistaken["notes"][0]["what"].as_str().unwrap();
    assert!(what.contains("everything"), "{what}");
}

#[test]
fn what_a_cluster_is_given_is_printed() {
    let printed = Hermetic::with("terminal: {kubernetes_namespace: boxes}\n")
        .run(&["kubernetes", "manifest"]);
    assert_eq!(printed.code, 0, "{}", printed.err);
    assert!(
        printed.out.contains("namespace: boxes") && printed.out.contains("resources: [pods/exec]")
    );
    assert!(!printed.out.contains("StatefulSet"));
    let both = [
        "kubernetes",
        "manifest",
        "--gateway",
        "hermetic",
        "--image",
        "registry.example/h:1",
    ];
    let printed = Hermetic::new().run(&both);
    for part in ["StatefulSet", "PodDisruptionBudget", "registry.example/h:1"] {
        assert!(printed.out.contains(part), "{part}");
    }
    assert!(!printed.out.contains("ServiceMonitor"));
    let mut monitored = both.to_vec();
    monitored.push("--service-monitor");
    let printed = Hermetic::new().run(&monitored);
    assert!(printed.out.contains("ServiceMonitor"), "{}", printed.err);
    let one = [
        "kubernetes",
        "manifest",
        "--gateway",
        "same",
        "--namespace",
        "same",
    ];
    assert_ne!(Hermetic::new().run(&one).code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn commands_run_in_pods_and_a_kept_one_is_found_again() {
    let test = "commands_run_in_pods_and_a_kept_one_is_found_again";
    if let Some(why) = lacking().await {
        return eprintln!("SKIP: {test}: {why}");
    }
    let server = Server::open().await;
    let folder = tempfile::tempdir().unwrap();
    let config = config(&server, folder.path());
    let hermetic = Hermetic::with(&config);
    let found = row(&run(&hermetic, &["backends", "--json"]).await);
    assert_eq!(found["available"], true, "{found}");

    let exec = ["exec", "--backend", "kubernetes"];
    let once = [&exec[..], &["--", "sh", "-c", "pwd; cat; exit 7"]].concat();
    let ended = run(&hermetic, &once).await;
    let said = (ended.code, ended.out.as_str());
    assert_eq!(said, (7, "/workspace\n"), "{}", ended.err);
    assert!(server.objects("pods").is_empty(), "it was not to be kept");

    let kept = [&exec[..], &["--session", "mine", "--"]].concat();
    let write = [&kept[..], &["sh", "-c", "echo mine > note"]].concat();
    let ended = run(&hermetic, &write).await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(server.objects("pods").len(), 1);
    let read = [&kept[..], &["cat", "note"]].concat();
    let ended = run(&hermetic, &read).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "mine\n"),
        "{}",
        ended.err
    );
    let pruned = run(&hermetic, &["sandbox", "list", "--json"]).await;
    assert!(pruned.out.contains("kubernetes"), "{}", pruned.out);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_installed_agent_is_copied_into_its_pod_and_answers() {
    let test = "an_installed_agent_is_copied_into_its_pod_and_answers";
    if let Some(why) = lacking().await {
        return eprintln!("SKIP: {test}: {why}");
    }
    let server = Server::open().await;
    let folder = tempfile::tempdir().unwrap();
    let hermetic = Hermetic::with(&config(&server, folder.path()))
        .file(".env", "ANTHROPIC_API_KEY=sk-ant-of-the-test\n");
    put_in_place_of_opencode(&hermetic.path("hermetic/agents"), "7").unwrap();
    let ask = ["chat", "--agent", "opencode", "-q", "env VERSION"];
    let ended = run(&hermetic, &ask).await;
    let said = (ended.code, ended.out.trim());
    assert_eq!(said, (0, "VERSION=7"), "{}", ended.err);
    server.end().await;
}
