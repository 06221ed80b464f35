//! Bounds that hold from inside.

use super::lab::{BackendCandidate, ConformanceLab, stdout};

pub async fn a_fork_bomb_stays_inside_its_bound(candidate: BackendCandidate) {
    if !candidate.keeps_limits {
        return eprintln!("SKIP: a_fork_bomb_stays_inside_its_bound: the backend bounds nothing");
    }
    let lab = ConformanceLab::open(candidate).await;
    let text = "for i in $(seq 400); do sleep 30 & done 2>/dev/null; ls -d /proc/[0-9]* | wc -l";
    let bombed = lab.sh(text).await;
    let seen = stdout(&bombed);
    // The shell may be refused even the last fork; then nothing was counted, and nothing got past.
    let count = seen.trim().parse::<u32>().unwrap_or(0);
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
