//! What runs, and what comes of it.

use std::time::Duration;

use futures::future::join_all;
use hermetic_types::{Command, CommandInput};
use hermetic_warden::client::RunEvent;
use sha2::{Digest, Sha256};

use super::cleared;
use super::lab::{BackendCandidate, ConformanceLab, run, stdout};

pub async fn exit_codes_and_signals_are_told(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    for code in [0, 1, 2, 42, 255] {
        assert_eq!(lab.sh(&format!("exit {code}")).await.code(), code);
    }
    assert_eq!(lab.sh("kill -TERM $$").await.code(), 128 + 15);
    assert_eq!(lab.sh("kill -KILL $$").await.code(), 128 + 9);
    let missing = Command::words(["/no/such/program"]);
    let refused = lab.sandbox.start(cleared(missing)).await;
    let failed = match refused {
        Err(_) => true,
        Ok(mut running) => loop {
            match running.next().await {
                Err(_) => break true,
                Ok(Some(RunEvent::Ended(ended))) => {
                    break ended.status != hermetic_warden::protocol::ExitState::Exited(0);
                }
                Ok(None) => break false,
                Ok(Some(_)) => {}
            }
        },
    };
    assert!(failed, "a program that is not there was started");
    let apart = lab.sh("echo out; echo err >&2").await;
    assert_eq!(apart.stdout.into_bytes(), b"out\n");
    assert_eq!(apart.stderr.into_bytes(), b"err\n");
    lab.close().await;
}

pub async fn stdin_reaches_the_command(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let mut command = Command::words(["sha256sum"]);
    let input: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    command.stdin = CommandInput::Bytes(input.clone());
    let digest = stdout(&run(&lab.sandbox, command).await);
    assert!(
        digest.starts_with(&hex(&Sha256::digest(&input))),
        "{digest}"
    );

    // A command that does not want its input is no failure.
    let mut command = Command::words(["true"]);
    command.stdin = CommandInput::Bytes(input);
    assert_eq!(run(&lab.sandbox, command).await.code(), 0);
    // No input is the end of input, not a wait.
    assert_eq!(lab.sh("cat").await.code(), 0);
    lab.close().await;
}

pub async fn binary_output_arrives_whole(candidate: BackendCandidate) {
    const SIZE: u64 = 32 << 20;
    let lab = ConformanceLab::open(candidate).await;
    let text = format!("head -c {SIZE} /dev/urandom | tee >(sha256sum >&2)");
    let mut running = lab
        .sandbox
        .start(cleared(Command::script(text)))
        .await
        .unwrap();
    let (mut digest, mut total, mut told) = (Sha256::new(), 0, Vec::new());
    while let Some(event) = running.next().await.unwrap() {
        match event {
            RunEvent::Out(bytes) => {
                total += bytes.len() as u64;
                digest.update(&bytes);
            }
            RunEvent::Err(bytes) => told.extend_from_slice(&bytes),
            RunEvent::Skipped(_) => panic!("output was lost"),
            RunEvent::Started { .. } | RunEvent::Ended(_) => {}
        }
    }
    assert_eq!(total, SIZE);
    let (told, seen) = (
        String::from_utf8_lossy(&told).into_owned(),
        hex(&digest.finalize()),
    );
    // The side process that counts may be later than the command itself.
    assert!(
        told.is_empty() || told.starts_with(&seen),
        "{told} is not {seen}"
    );
    lab.close().await;
}

pub async fn a_stalled_reader_costs_bounded_memory(candidate: BackendCandidate) {
    const BOUND: u64 = 16 << 20;
    let lab = ConformanceLab::open(candidate).await;
    let command = cleared(Command::words(["yes"]));
    let mut stalled = lab.sandbox.start(command).await.unwrap();
    assert!(matches!(
        stalled.next().await,
        Ok(Some(RunEvent::Started { .. }))
    ));
    // Other commands still run while nobody reads that one; time passes by doing so.
    for _ in 0..50 {
        assert_eq!(lab.sh("true").await.code(), 0);
    }
    let info = lab.sandbox.warden().info().await.unwrap();
    assert!(
        info.rss_bytes < BOUND,
        "the warden holds {} bytes",
        info.rss_bytes
    );
    drop(stalled);
    lab.close().await;
}

pub async fn a_thousand_in_a_row(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    for turn in 0..1_000 {
        let command = Command::words(["/bin/sh".to_owned(), "-c".into(), format!("echo {turn}")]);
        assert_eq!(
            stdout(&run(&lab.sandbox, command).await),
            format!("{turn}\n")
        );
    }
    lab.close().await;
}

pub async fn fifty_at_once(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let texts = (0..50).map(|n| format!("read -t 0.2 x < <(sleep 1); echo {n}; exit {n}"));
    let runs = texts.map(|text| run(&lab.sandbox, Command::script(text)));
    for (n, finished) in (0..).zip(join_all(runs).await) {
        assert_eq!((stdout(&finished), finished.code()), (format!("{n}\n"), n));
    }
    lab.close().await;
}

pub async fn nothing_of_the_launcher_is_inherited(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let env = stdout(&lab.sh("env").await);
    assert!(env.contains("FROM_SPEC=yes"), "{env}");
    // Set by cargo for every test: whoever sees one sees the launcher's environment.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "NEXTEST"] {
        assert!(!env.contains(name), "{name} leaked: {env}");
    }
    let mut command = Command::script("echo $ONLY_ONCE");
    command.env.insert("ONLY_ONCE".into(), "here".into());
    assert_eq!(stdout(&run(&lab.sandbox, command).await), "here\n");
    assert_eq!(stdout(&lab.sh("echo $ONLY_ONCE").await), "\n");
    // 0 to 2 and the one that lists; no descriptor of the gateway's or the warden's.
    let open = stdout(&lab.sh("ls /proc/self/fd").await);
    assert_eq!(
        open.split_whitespace().collect::<Vec<_>>(),
        ["0", "1", "2", "3"]
    );
    lab.close().await;
}

pub async fn the_shell_keeps_its_state(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let shell = |text: &str| {
        let mut command = Command::shell(text);
        command.timeout = Some(Duration::from_secs(30));
        command
    };
    run(&lab.sandbox, shell("cd /usr; x=5; f() { echo f$x; }")).await;
    assert_eq!(
        stdout(&run(&lab.sandbox, shell("f; pwd")).await),
        "f5\n/usr\n"
    );
    let ended = run(&lab.sandbox, shell("exit 3")).await;
    assert_eq!((ended.code(), ended.ended.shell_lost.is_some()), (3, true));
    assert_eq!(
        stdout(&run(&lab.sandbox, shell("echo again")).await),
        "again\n"
    );
    lab.close().await;
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
