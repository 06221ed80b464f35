//! What can be told from the shape of a pipeline or a function, before its words are known.

use crate::syntax::{NodeKind, Pipeline, ShellNode, ShellScript, ShellWord, WordPart};

/// `nc -l 1 < p | sh > p`, in either order: a shell that nobody types into, and a connection.
pub(super) fn connects_a_shell(pipeline: &Pipeline) -> bool {
    let mut shell = false;
    let mut connection = false;
    for stage in &pipeline.stages {
        let NodeKind::Simple(simple) = &stage.kind else {
            continue;
        };
        let words: Vec<&str> = simple
            .words
            .iter()
            .filter_map(ShellWord::as_plain)
            .collect();
        let Some(first) = words.first() else {
            continue;
        };
        let name = crate::effective::base_name(first);
        let bare = words
            .iter()
            .skip(1)
            .all(|word| matches!(*word, "-i" | "-s" | "-l" | "-li" | "-"));
        shell |= super::shells::is_shell(name) && bare;
        connection |= matches!(
            name,
            "nc" | "ncat" | "netcat" | "telnet" | "socat" | "websocat"
        ) || name == "openssl" && words.contains(&"s_client")
            || name == "busybox" && words.contains(&"nc");
    }
    shell && connection
}

/// Whether a program tells only how much comes in, or a number made of it, or logs in with it.
pub(super) fn counts(node: &ShellNode) -> bool {
    let NodeKind::Simple(simple) = &node.kind else {
        return false;
    };
    let words: Vec<&str> = simple
        .words
        .iter()
        .filter_map(ShellWord::as_plain)
        .collect();
    match words.as_slice() {
        [
            "wc" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "cksum" | "b2sum",
            ..,
        ] => true,
        [
            "docker" | "podman" | "nerdctl" | "helm" | "skopeo" | "crane" | "buildah" | "oras",
            rest @ ..,
        ] => rest
            .iter()
            .any(|word| matches!(*word, "--password-stdin" | "--with-token")),
        ["grep" | "egrep" | "fgrep", rest @ ..] => rest.iter().any(|word| {
            word.starts_with('-') && !word.starts_with("--") && word.contains(['q', 'c'])
        }),
        _ => false,
    }
}

/// `$0 | $0 &`
pub(super) fn runs_itself(node: &ShellNode) -> bool {
    let NodeKind::Simple(simple) = &node.kind else {
        return false;
    };
    simple
        .words
        .first()
        .is_some_and(|word| match word.0.as_slice() {
            [WordPart::Param(param)] => param.name == "0",
            [WordPart::Double(parts)] => {
                matches!(parts.as_slice(), [WordPart::Param(param)] if param.name == "0")
            }
            _ => false,
        })
        && simple.words.len() == 1
}

/// Whether the body calls its own name in a pipeline, twice, or in the background.
pub(super) fn bombs(body: &ShellScript, name: &str) -> bool {
    let mut calls = 0;
    let mut multiplies = false;
    count_calls(body, name, false, &mut calls, &mut multiplies);
    multiplies && calls > 0
}

fn count_calls(
    script: &ShellScript,
    name: &str,
    within: bool,
    calls: &mut usize,
    multiplies: &mut bool,
) {
    for pipeline in &script.pipelines {
        let parallel = within || pipeline.background || pipeline.stages.len() > 1;
        for stage in &pipeline.stages {
            match &stage.kind {
                NodeKind::Simple(simple) => {
                    let called = simple.words.first().and_then(ShellWord::as_plain) == Some(name);
                    if called {
                        *calls += 1;
                        *multiplies |= parallel;
                    }
                }
                NodeKind::Subshell(script) => {
                    count_calls(script, name, parallel, calls, multiplies);
                }
                NodeKind::Group(scripts) => {
                    for script in scripts {
                        count_calls(script, name, parallel, calls, multiplies);
                    }
                }
                NodeKind::Loop { condition, body } => {
                    count_calls(condition, name, parallel, calls, multiplies);
                    count_calls(body, name, parallel, calls, multiplies);
                }
                NodeKind::For { body, .. } => count_calls(body, name, parallel, calls, multiplies),
                _ => {}
            }
        }
    }
}
