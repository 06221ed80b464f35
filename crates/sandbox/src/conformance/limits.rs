//! Bounds that hold from inside.

use super::lab::{BackendCandidate, ConformanceLab, stdout};

pub async fn a_fork_bomb_stays_inside_its_bound(candidate: BackendCandidate) {
    if !candidate.keeps_limits {
        return eprintln!("SKIP: a_fork_bomb_stays_inside_its_bound: the backend bounds nothing");
    }
    let lab = ConformanceLab::open(candidate).await;
    // bash tries a fork that is refused for fifteen seconds, an ordinary shell gives up. Counting takes no fork,
    // which nobody would have any more.
    let text =
        "sh -c 'for i in $(seq 400); do sleep 30 & done' 2>/dev/null; set -- /proc/[0-9]*; echo $#";
    let bombed = lab.sh(text).await;
    let count: u32 = stdout(&bombed).trim().parse().expect("a number");
    assert!(count > 8, "{count} processes: nothing was tried");
    assert!(count <= lab.spec.limits.pids, "{count} processes");
    lab.close().await;
}

pub async fn open_files_are_bounded(candidate: BackendCandidate) {
    if !candidate.keeps_limits {
        return eprintln!("SKIP: open_files_are_bounded: the backend bounds nothing");
    }
    let lab = ConformanceLab::open(candidate).await;
    let hard: u32 = stdout(&lab.sh("ulimit -Hn").await)
        .trim()
        .parse()
        .expect("a number");
    assert!(hard <= lab.spec.limits.open_files, "{hard} open files");
    assert_ne!(lab.sh("ulimit -n $((`ulimit -Hn` + 1))").await.code(), 0);
    lab.close().await;
}
