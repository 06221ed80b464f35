//! Without a gateway: can a sandbox be had here, and does it hold?

use std::time::Duration;

use super::super::guest::{LONG, Who};
use super::super::payload::CONTRACT;
use super::{Stage, Told, delegated, fine, wrong};

const CAN: &str = "Sandboxes can run here.";

/// What doctor says is so.
pub(super) fn doctor(stage: &mut Stage) -> Told {
    let mut times = Vec::new();
    for who in Who::BOTH {
        let said = stage.guest.run(who, "hermetic doctor", LONG)?;
        let says_yes = said.code == Some(0) && said.out.contains(CAN);
        let tried = stage.guest.run(who, "hermetic exec -- true", LONG)?;
        let works = tried.code == Some(0);
        match (says_yes, works) {
            (true, true) => times.push(said.took.as_secs_f64()),
            (true, false) => {
                return wrong(format!(
                    "as {}, doctor says that sandboxes can run, and none does: {}",
                    who.name(),
                    tried.all()
                ));
            }
            (false, _) => return wrong(format!("as {}: {}", who.name(), said.all())),
        }
    }
    Ok(format!(
        "as root {:.1} s, as a user {:.1} s",
        times[0], times[1]
    ))
}

/// Output and exit code come back; and what a start costs.
pub(super) fn exec(stage: &mut Stage) -> Told {
    let mut figures = Vec::new();
    for who in Who::BOTH {
        let odd = "hermetic exec -- sh -c 'echo out; echo err >&2; exit 7'";
        let said = stage.guest.run(who, odd, LONG)?;
        let told = (said.code, said.out.as_str(), said.err.as_str());
        if told != (Some(7), "out\n", "err\n") {
            return wrong(format!("as {}: {}", who.name(), said.all()));
        }
        let timed = "TIMEFORMAT=%R; for i in 1 2 3 4 5; do time hermetic exec -- true; done";
        let said = fine(who, "exec", stage.guest.run(who, timed, LONG)?)?;
        let mut times: Vec<f64> = said.err.lines().flat_map(str::parse).collect();
        times.sort_by(f64::total_cmp);
        match times.get(2) {
            Some(median) if times.len() == 5 => {
                figures.push(format!("as {} {median:.2} s", who.name()));
            }
            _ => return wrong(said.all()),
        }
    }
    Ok(format!(
        "`exec -- true`, median of 5: {}",
        figures.join(", ")
    ))
}

/// Every attack we know, from inside, with limits by cgroup and without.
pub(super) fn attack(stage: &mut Stage) -> Told {
    let mut figures = Vec::new();
    for who in Who::BOTH {
        let bare = "hermetic doctor --attack".to_owned();
        for (how, line) in [
            ("", bare),
            (
                " delegated",
                delegated(who, "/usr/local/bin/hermetic doctor --attack"),
            ),
        ] {
            let said = fine(who, "doctor --attack", stage.guest.run(who, &line, LONG)?)?;
            let took = said.took.as_secs_f64();
            figures.push(format!("{}{how} {took:.0} s", who.name()));
        }
    }
    Ok(format!("all held: {}", figures.join(", ")))
}

/// The suite that every change passes, on this kernel. As root it runs itself as a plain user too.
pub(super) fn contract(stage: &mut Stage) -> Told {
    let at_most = Duration::from_secs(1800);
    // Two at a time: the machine has two slow processors, and the stories have deadlines.
    let program = format!("/usr/local/bin/{CONTRACT} --test-threads=2");
    let line = delegated(Who::Root, &format!("--working-directory=/tmp {program}"));
    let said = stage.guest.run(Who::Root, &line, at_most)?;
    let result = said
        .out
        .lines()
        .find(|line| line.starts_with("test result:"));
    let failed: Vec<_> = said
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .collect();
    match result {
        Some(result) if said.code == Some(0) => {
            let skipped = said.err.matches("SKIP: ").count();
            let took = said.took.as_secs_f64();
            Ok(format!("{result} ({skipped} lines of skips, {took:.0} s)"))
        }
        Some(result) => wrong(format!("{result} failed: {}", failed.join(", "))),
        None => wrong(format!("it came to no end; failed: {}", failed.join(", "))),
    }
}
