//! Without a gateway: can a sandbox be had here, and does it hold?

use std::time::Duration;

use super::super::guest::{GuestUser, LONG};
use super::super::payload::CONTRACT;
use super::{StoryContext, StoryResult, delegated, expect_success, fail};

const CAN: &str = "Sandboxes can run here.";

/// What doctor says is so.
pub(super) fn doctor(context: &mut StoryContext) -> StoryResult {
    let mut times = Vec::new();
    for who in GuestUser::BOTH {
        let said = context.guest.run(who, "hermetic doctor", LONG)?;
        let says_yes = said.code == Some(0) && said.out.contains(CAN);
        let tried = context.guest.run(who, "hermetic exec -- true", LONG)?;
        let works = tried.code == Some(0);
        match (says_yes, works) {
            (true, true) => times.push(said.took.as_secs_f64()),
            (true, false) => {
                return fail(format!(
                    "as {}, doctor says that sandboxes can run, and none does: {}",
                    who.name(),
                    tried.all()
                ));
            }
            (false, _) => return fail(format!("as {}: {}", who.name(), said.all())),
        }
    }
    Ok(format!(
        "as root {:.1} s, as a user {:.1} s",
        times[0], times[1]
    ))
}

/// Output and exit code come back; and what a start costs.
pub(super) fn exec(context: &mut StoryContext) -> StoryResult {
    let mut figures = Vec::new();
    for who in GuestUser::BOTH {
        let odd = "hermetic exec -- sh -c 'echo out; echo err >&2; exit 7'";
        let said = context.guest.run(who, odd, LONG)?;
        let heard = (said.code, said.out.as_str(), said.err.as_str());
        if heard != (Some(7), "out\n", "err\n") {
            return fail(format!("as {}: {}", who.name(), said.all()));
        }
        let timed = "TIMEFORMAT=%R; for i in 1 2 3 4 5; do time hermetic exec -- true; done";
        let said = expect_success(who, "exec", context.guest.run(who, timed, LONG)?)?;
        let mut times: Vec<f64> = said.err.lines().flat_map(str::parse).collect();
        times.sort_by(f64::total_cmp);
        match times.get(2) {
            Some(median) if times.len() == 5 => {
                figures.push(format!("as {} {median:.2} s", who.name()));
            }
            _ => return fail(said.all()),
        }
    }
    Ok(format!(
        "`exec -- true`, median of 5: {}",
        figures.join(", ")
    ))
}

/// Every attack we know, from inside, with limits by cgroup and without.
pub(super) fn attack(context: &mut StoryContext) -> StoryResult {
    let mut figures = Vec::new();
    for who in GuestUser::BOTH {
        let bare = "hermetic doctor --attack".to_owned();
        for (how, line) in [
            ("", bare),
            (
                " delegated",
                delegated(who, "/usr/local/bin/hermetic doctor --attack"),
            ),
        ] {
            let said =
                expect_success(who, "doctor --attack", context.guest.run(who, &line, LONG)?)?;
            let took = said.took.as_secs_f64();
            figures.push(format!("{}{how} {took:.0} s", who.name()));
        }
    }
    Ok(format!("all held: {}", figures.join(", ")))
}

/// The suite that every change passes, on this kernel. As root it runs itself as a plain user too.
pub(super) fn contract(context: &mut StoryContext) -> StoryResult {
    // Under emulation some tests take minutes each; it was cut at half an hour and never came to its end.
    let at_most = Duration::from_secs(5400);
    // Two at a time: while one waits the other works, and with more of them their own deadlines pass.
    let program = format!("/usr/local/bin/{CONTRACT} --test-threads=2");
    let line = delegated(
        GuestUser::Root,
        &format!("--working-directory=/tmp {program}"),
    );
    let said = context.guest.run(GuestUser::Root, &line, at_most)?;
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
        Some(result) => fail(format!("{result} failed: {}", failed.join(", "))),
        None => {
            let passed = said.out.lines().filter(|line| line.ends_with(" ... ok"));
            fail(format!(
                "no end within {} s: {} passed, failed: {}",
                at_most.as_secs(),
                passed.count(),
                failed.join(", ")
            ))
        }
    }
}

/// Tables of the whole host, filled to the brim. Alone, because nobody else has what one fills, and only here,
/// where the machine is the tests' own.
pub(super) fn tables(context: &mut StoryContext) -> StoryResult {
    let program = format!("/usr/bin/env HERMETIC_TEST_OWN_MACHINE=1 /usr/local/bin/{CONTRACT}");
    let line = format!("--working-directory=/tmp {program} brim:: --test-threads=1");
    let line = delegated(GuestUser::Root, &line);
    let said = context
        .guest
        .run(GuestUser::Root, &line, Duration::from_secs(600))?;
    let result = said
        .out
        .lines()
        .find(|line| line.starts_with("test result:"));
    match result {
        // A filter that fits nothing passes too.
        Some(result) if said.code == Some(0) && !result.contains(" 0 passed") => {
            let took = said.took.as_secs_f64();
            Ok(format!("{result} ({took:.0} s)"))
        }
        _ => fail(said.all()),
    }
}
