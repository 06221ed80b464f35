//! The persistent shell, and everything that people do to one.

use std::time::Duration;

use hermetic_warden::client::{Warden, WardenCallError};
use hermetic_warden::protocol::{
    CutReason, ExitState, FailureKind, KillRequest, ShellLost, ShellRequest,
};

use crate::lab::{Lab, Told, alive, told, until};

async fn say(warden: &Warden, text: &str) -> Told {
    told(warden.shell(ShellRequest::new("main", text)).await.unwrap())
        .await
        .unwrap()
}

async fn say_within(warden: &Warden, text: &str, limit: Duration) -> Told {
    let mut shell = ShellRequest::new("main", text);
    shell.timeout = Some(limit);
    told(warden.shell(shell).await.unwrap()).await.unwrap()
}

fn text(told: &Told) -> String {
    String::from_utf8_lossy(&told.out).into_owned()
}

#[tokio::test]
async fn state_stays_from_call_to_call() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let first = say(&warden, "cd /tmp; plain=1; export shown=2; f() { echo fn $1; }; alias say='echo aliased'; shopt -s nullglob; set -u").await;
    assert_eq!(
        (text(&first), first.ended.status),
        (String::new(), ExitState::Exited(0))
    );
    assert!(first.ended.shell_fresh);
    assert_eq!(first.ended.cwd, Some("/tmp".into()));
    let second = say(
        &warden,
        "pwd; echo $plain; bash -c 'echo $shown'; f 3; say; shopt nullglob; echo /no/such/*",
    )
    .await;
    assert_eq!(
        text(&second),
        "/tmp\n1\n2\nfn 3\naliased\nnullglob       \ton\n\n"
    );
    assert!(!second.ended.shell_fresh);
}

#[tokio::test]
async fn a_shell_that_ends_is_followed_by_a_fresh_one() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    for (command, out, status, lost) in [
        (
            "echo bye; exit 3",
            "bye\n",
            ExitState::Exited(3),
            ShellLost::Exited,
        ),
        ("exit", "", ExitState::Exited(0), ShellLost::Exited),
        (
            "exec echo replaced",
            "replaced\n",
            ExitState::Exited(0),
            ShellLost::Exited,
        ),
        (
            "set -e; false; echo not here",
            "",
            ExitState::Exited(1),
            ShellLost::Exited,
        ),
        ("kill -9 $$", "", ExitState::Signalled(9), ShellLost::Killed),
    ] {
        say(&warden, "cd /usr; kept=1").await;
        let told = say(&warden, command).await;
        assert_eq!(text(&told), out, "{command}");
        assert_eq!(told.ended.status, status, "{command}");
        assert_eq!(told.ended.shell_lost, Some(lost), "{command}");
        let next = say(&warden, "echo [${kept-}] $PWD").await;
        assert_eq!(text(&next), "[] /usr\n", "{command}");
        assert!(next.ended.shell_fresh, "{command}");
    }
}

#[tokio::test]
async fn nothing_a_command_does_reaches_the_next_one_by_accident() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    for (command, status) in [
        ("cat", 0),
        ("read x; echo \"got [$x]\"", 0),
        ("echo 'unterminated", 2),
        ("if true; then", 2),
        ("cat <<END\nnever ended", 0),
        ("exec >/dev/null; echo unseen", 0),
        ("exec 2>&- >&- <&-", 0),
        ("printf '%s\\n' '1 0' '2 0' '3 0' '4 0'", 0),
        ("no-such-command", 127),
        ("(exit 4)", 4),
        ("set -u; echo $undefined_variable", 1),
        (
            "read() { :; }; printf() { :; }; eval() { :; }; alias builtin=false; unalias -a",
            0,
        ),
        (
            "unset -f read printf eval; set +u; trap 'echo trapped' DEBUG; trap - DEBUG",
            0,
        ),
        (
            "PS1='$(echo prompt)'; PROMPT_COMMAND='echo before'; PROMPT_COMMAND=",
            0,
        ),
    ] {
        let told = say(&warden, command).await;
        assert_eq!(
            told.ended.status,
            ExitState::Exited(status),
            "{command}: {}",
            text(&told)
        );
        assert_eq!(told.ended.shell_lost, None, "{command}");
        let next = say(&warden, "echo here").await;
        assert_eq!(text(&next), "here\n", "{command}");
    }
}

#[tokio::test]
async fn a_command_sees_none_of_our_descriptors() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = say(&warden, "/bin/ls /proc/self/fd").await;
    assert_eq!(text(&told), "0\n1\n2\n3\n");
}

#[tokio::test]
async fn a_command_that_closes_every_descriptor_loses_only_its_shell() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = say(&warden, "for fd in {0..255}; do eval \"exec $fd>&-\"; done").await;
    assert!(told.ended.shell_lost.is_some(), "{told:?}");
    assert_eq!(text(&say(&warden, "echo here").await), "here\n");
}

#[tokio::test]
async fn output_of_any_size_and_kind_arrives_whole() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = say(&warden, "head -c 3000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(told.out.len(), 3_000_000);
    let told = say(&warden, "printf '\\0\\377\\n\\r\\033[2J'").await;
    assert_eq!(told.out, b"\0\xff\n\r\x1b[2J");
    let long = "y".repeat(1_000_000);
    let told = say(&warden, &format!("x={long}; echo ${{#x}}")).await;
    assert_eq!(text(&told), "1000000\n");
    let refused = warden
        .shell(ShellRequest::new("main", "echo \0"))
        .await
        .unwrap();
    match crate::lab::told(refused).await {
        Err(WardenCallError::Failed(failure)) => assert_eq!(failure.kind, FailureKind::BadRequest),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn background_jobs_hold_nobody_up_and_survive_an_interrupt() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = say(&warden, "sleep 1000 & echo $!").await;
    let sleeper: u32 = text(&told).trim().parse().unwrap();
    assert_eq!(told.ended.leftovers, 1);
    let told = say_within(&warden, "kept=yes; sleep 2000", Duration::from_millis(200)).await;
    assert_eq!(told.ended.cut, Some(CutReason::TimedOut));
    assert_eq!(told.ended.shell_lost, None);
    assert!(alive(sleeper));
    assert_eq!(text(&say(&warden, "echo $kept").await), "yes\n");
    warden
        .kill(KillRequest::Shell("main".into()))
        .await
        .unwrap();
    assert!(!alive(sleeper));
}

#[tokio::test]
async fn what_a_job_writes_between_two_commands_comes_with_the_second() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let flag = lab.path("written");
    say(
        &warden,
        &format!("(sleep 0.05; echo late; touch {}) & :", flag.display()),
    )
    .await;
    until("the job has written", || flag.exists()).await;
    assert_eq!(text(&say(&warden, "echo now").await), "late\nnow\n");
}

#[tokio::test]
async fn a_timeout_ends_the_command_and_keeps_the_shell() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    say(&warden, "kept=yes").await;
    for command in [
        "sleep 1000",
        "while :; do sleep 1000; done",
        "while :; do :; done",
        "setsid sleep 1000; echo after",
        "trap '' INT; sleep 1000",
        "trap - INT; (trap '' INT TERM; while :; do sleep 1; done)",
        "bash -c 'trap \"\" INT TERM; while :; do sleep 1000; done'",
        "wait $(sleep 1000 | cat)",
        "yes | cat >/dev/null",
    ] {
        let told = say_within(&warden, command, Duration::from_millis(100)).await;
        assert_eq!(told.ended.cut, Some(CutReason::TimedOut), "{command}");
        assert_eq!(told.ended.shell_lost, None, "{command}: {told:?}");
        let next = say(&warden, "echo $kept $(pgrep -c -P $$ sleep)").await;
        assert_eq!(text(&next), "yes 0\n", "{command}");
    }
}

/// bash does not always come back from a process substitution whose other end was killed. Then it
/// is replaced, and that is told; either way the command is over and the next one works.
#[tokio::test]
async fn a_process_substitution_is_ended_and_the_shell_kept_or_replaced() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    say(&warden, "cd /usr; kept=yes").await;
    let told = say_within(&warden, "read < <(sleep 1000)", Duration::from_millis(100)).await;
    assert_eq!(told.ended.cut, Some(CutReason::TimedOut));
    let next = say(&warden, "echo $PWD $kept $(pgrep -c -P $$ sleep)").await;
    let expected = match told.ended.shell_lost {
        None => "/usr yes 0\n",
        Some(_) => "/usr 0\n",
    };
    assert_eq!(text(&next), expected, "{told:?}");
}

#[tokio::test]
async fn a_shell_that_cannot_be_interrupted_is_replaced() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let command = "cd /usr; trap '' INT; while :; do :; done";
    let told = say_within(&warden, command, Duration::from_millis(100)).await;
    assert_eq!(told.ended.cut, Some(CutReason::TimedOut));
    assert_eq!(told.ended.shell_lost, Some(ShellLost::Stuck));
    assert_eq!(text(&say(&warden, "pwd").await), "/usr\n");
}

#[tokio::test]
async fn an_interrupt_ends_the_command_with_130() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let flag = lab.path("begun");
    let text = format!("touch {}; sleep 1000; echo after", flag.display());
    let running = warden.shell(ShellRequest::new("main", text)).await.unwrap();
    until("it has begun", || flag.exists()).await;
    running.signal(libc::SIGINT).await.unwrap();
    let told = told(running).await.unwrap();
    assert_eq!(told.ended.status, ExitState::Exited(130));
    assert_eq!(told.out, b"");
    assert_eq!(told.ended.shell_lost, None);
}

#[tokio::test]
async fn a_missing_bash_is_said_clearly() {
    let lab = Lab::with_path("/nowhere").await;
    let warden = lab.warden().await;
    match told(
        warden
            .shell(ShellRequest::new("main", "true"))
            .await
            .unwrap(),
    )
    .await
    {
        Err(WardenCallError::Failed(failure)) => assert_eq!(failure.kind, FailureKind::NoShell),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_costs_is_told_for_itself_and_its_children() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let burn = "i=0; while ((i < 100000)); do ((i++)); done";
    let own = say(&warden, burn).await.ended.usage.user;
    let childs = say(&warden, &format!("bash -c '{burn}'"))
        .await
        .ended
        .usage
        .user;
    let last = say(&warden, &format!("{burn}; exit"))
        .await
        .ended
        .usage
        .user;
    for used in [own, childs, last] {
        assert!(!used.is_zero(), "{own:?} {childs:?} {last:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_its_time_is_left_alone() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    say(&warden, "kept=1").await;
    // Longer than a shell may be silent that has nothing to do.
    for patient in ["sleep 6", "(sleep 6)", "read -t 6 -r < <(sleep 7) || true"] {
        let told = say(&warden, &format!("{patient}; echo through")).await;
        assert_eq!(
            (text(&told), told.ended.status),
            ("through\n".into(), ExitState::Exited(0))
        );
        assert_eq!(told.ended.shell_lost, None, "{patient}");
    }
    assert_eq!(text(&say(&warden, "false; echo $? $kept").await), "1 1\n");
}
