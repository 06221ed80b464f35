//! Timeouts, kills and everything that tries to get away from them.

use std::time::Duration;

use hermetic_warden::client::{RunEvent, Warden, WardenCallError};
use hermetic_warden::protocol::{
    CutReason, ExitState, KillRequest, LeftoverPolicy, OutputStreams, RunRequest, WindowSize,
};

use crate::lab::{Lab, alive, run, sh, told, until};

/// Each writes its process ids to the file named by `$PIDS` and would stay for ever.
const ESCAPES: [(&str, &str); 7] = [
    (
        "plain",
        "echo $$ >> $PIDS; sleep 1000 & echo $! >> $PIDS; wait",
    ),
    (
        "ignores SIGTERM",
        "trap '' TERM INT HUP; echo $$ >> $PIDS; while :; do sleep 1000; done",
    ),
    (
        "setsid",
        "setsid sleep 1000 & echo $! >> $PIDS; echo $$ >> $PIDS; wait",
    ),
    (
        "double fork",
        "(setsid bash -c 'echo $$ >> $PIDS; trap \"\" TERM; while :; do sleep 1000; done' & ); echo $$ >> $PIDS; sleep 1000",
    ),
    (
        "forks all the time",
        "echo $$ >> $PIDS; f() { sleep 0.01; f & }; for i in 1 2 3 4 5 6 7 8; do f & done; sleep 1000",
    ),
    (
        "stopped",
        "sleep 1000 & echo $! >> $PIDS; kill -STOP $!; echo $$ >> $PIDS; kill -STOP $$",
    ),
    (
        "kills its keeper",
        "sleep 1000 & echo $! >> $PIDS; echo $$ >> $PIDS; setsid sleep 1000 & echo $! >> $PIDS; kill -9 $PPID; sleep 1000",
    ),
];

fn pids(path: &std::path::Path) -> Vec<u32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    for (name, script) in ESCAPES {
        let file = lab.path("pids");
        let _ = std::fs::remove_file(&file);
        let mut request = sh(script);
        request.env = vec![("PIDS".into(), file.clone().into())];
        request.timeout = Some(Duration::from_millis(300));
        request.grace = Duration::from_millis(100);
        let told = told(warden.run(request).await.unwrap()).await;
        // Whoever kills his keeper may do so before it could say that he was started.
        if name != "kills its keeper" {
            assert_eq!(told.unwrap().ended.cut, Some(CutReason::TimedOut), "{name}");
        }
        let pids = pids(&file);
        assert!(!pids.is_empty(), "{name}");
        until(name, || pids.iter().all(|pid| !alive(*pid))).await;
        until(name, || children(lab.pid()) == 0).await;
    }
}

#[tokio::test]
async fn a_job_left_behind_does_not_outlive_its_keeper() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let left = run(&warden, sh("setsid sleep 1000 >/dev/null 2>&1 & echo $!")).await;
    let pid: u32 = String::from_utf8_lossy(&left.out).trim().parse().unwrap();
    assert!(alive(pid));
    let kill = format!("kill -9 $(awk '{{print $4}}' /proc/{pid}/stat)");
    run(&warden, sh(&kill)).await;
    until("the job is gone", || !alive(pid)).await;
    until("its keeper is gone", || children(lab.pid()) == 0).await;
}

#[tokio::test]
async fn dropping_a_run_ends_it() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let pid = started(&warden, sh("trap '' TERM; while :; do sleep 1000; done"))
        .await
        .1;
    until("it is gone", || !alive(pid)).await;
    until("its keeper is gone", || children(lab.pid()) == 0).await;
}

#[tokio::test]
async fn losing_the_link_ends_what_is_not_detached() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let (running, pid) = started_kept(&warden, sh("sleep 1000")).await;
    warden.close();
    until("it is gone", || !alive(pid)).await;
    drop(running);
}

#[tokio::test]
async fn a_kill_by_name_returns_when_nothing_is_left() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let mut request = sh("setsid sleep 1000 & exec sleep 1000");
    request.grace = Duration::from_millis(50);
    let id = request.id.clone();
    let (running, pid) = started_kept(&warden, request).await;
    warden.kill(KillRequest::Run(id)).await.unwrap();
    assert!(!alive(pid));
    assert_eq!(
        told(running).await.unwrap().ended.cut,
        Some(CutReason::Killed)
    );
}

#[tokio::test]
async fn background_processes_neither_hang_the_end_nor_die_with_it() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = run(
        &warden,
        sh("echo before; (while :; do echo noise; sleep 0.01; done) & echo $!"),
    )
    .await;
    let text = String::from_utf8(told.out).unwrap();
    let pid: u32 = text
        .lines()
        .filter_map(|line| line.parse().ok())
        .next()
        .unwrap();
    assert!(text.starts_with("before\n"));
    assert_eq!(told.ended.status, ExitState::Exited(0));
    assert!(told.ended.leftovers >= 1);
    assert!(alive(pid));

    let mut tidy = sh("sleep 1000 & echo $!");
    tidy.leftovers = LeftoverPolicy::End;
    let told = run(&warden, tidy).await;
    let pid: u32 = String::from_utf8(told.out).unwrap().trim().parse().unwrap();
    assert!(!alive(pid));
}

/// Who asked for it hears that the link is gone, and not of a kill that nobody wanted.
#[tokio::test]
async fn a_warden_that_is_told_to_stop_calls_no_command_ended() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let (mut running, _) = started_kept(&warden, sh("sleep 1000")).await;
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(lab.pid().cast_signed()).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    loop {
        match running.next().await {
            Ok(Some(RunEvent::Out(_) | RunEvent::Err(_))) => {}
            ended => break assert!(matches!(ended, Err(WardenCallError::LinkLost)), "{ended:?}"),
        }
    }
}

#[tokio::test]
async fn nothing_survives_the_warden() {
    let mut lab = Lab::new().await;
    let warden = lab.warden().await;
    let (running, pid) =
        started_kept(&warden, sh("trap '' TERM HUP; setsid sleep 1000 & wait")).await;
    let below: Vec<u32> = descendants(lab.pid());
    assert!(below.contains(&pid));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(lab.pid().cast_signed()).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    lab.until_ended().await;
    until("all are gone", || below.iter().all(|pid| !alive(*pid))).await;
    drop(running);

    // Not even when it is killed: keepers notice.
    let mut lab = Lab::new().await;
    let warden = lab.warden().await;
    let (running, _) =
        started_kept(&warden, sh("trap '' TERM HUP; setsid sleep 1000 & wait")).await;
    let below: Vec<u32> = descendants(lab.pid());
    lab.kill();
    lab.until_ended().await;
    until("all are gone", || below.iter().all(|pid| !alive(*pid))).await;
    drop(running);
}

#[tokio::test]
async fn a_terminal_is_a_terminal() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let mut request = sh("tty >/dev/null && stty size; echo $((1+1)); sleep 1000 & exit 5");
    request.output = OutputStreams::Pty(WindowSize {
        columns: 132,
        rows: 43,
    });
    let told = run(&warden, request).await;
    assert_eq!(String::from_utf8(told.out).unwrap(), "43 132\r\n2\r\n");
    assert_eq!(told.ended.status, ExitState::Exited(5));
}

#[tokio::test]
async fn an_idle_warden_goes_when_its_time_is_over() {
    let mut lab = Lab::with(&["--lifetime", "1"], None).await;
    let warden = lab.warden().await;
    let mut request = sh("sleep 1000");
    request.detach = true;
    let (running, pid) = started_kept(&warden, request).await;
    drop(running);
    warden.close();
    lab.until_ended().await;
    assert!(!alive(pid));
    assert!(!lab.path("socket").exists());
}

async fn started(warden: &Warden, request: RunRequest) -> ((), u32) {
    ((), started_kept(warden, request).await.1)
}

async fn started_kept(
    warden: &Warden,
    request: RunRequest,
) -> (hermetic_warden::client::RunningCommand, u32) {
    let mut running = warden.run(request).await.unwrap();
    match running.next().await.unwrap() {
        Some(RunEvent::Started { pid }) => (running, pid),
        other => panic!("{other:?}"),
    }
}

fn children(pid: u32) -> usize {
    children_of(pid).len()
}

fn children_of(pid: u32) -> Vec<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn descendants(pid: u32) -> Vec<u32> {
    let mut all = children_of(pid);
    let mut at = 0;
    while at < all.len() {
        all.extend(children_of(all[at]));
        at += 1;
    }
    all
}
