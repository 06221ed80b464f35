//! Limits on memory, processes and processors, and who gets them from the kernel.

use std::time::Duration;

use super::super::guest::VmGuest;
use super::super::guest::{GuestUser, LONG};
use super::StoryError;
use super::{StoryContext, StoryResult, delegated, expect_success, fail};

const LAYERS: [&str; 3] = ["process limit", "memory limit", "cpu limit"];

/// A service with a delegated group has all three from the kernel, and they bite.
pub(super) fn limits(context: &mut StoryContext) -> StoryResult {
    for who in GuestUser::BOTH {
        let doctor = delegated(who, "/usr/local/bin/hermetic doctor");
        let said = expect_success(who, "doctor", context.guest.run(who, &doctor, LONG)?)?;
        if let Some(layer) = weaker(&said.out) {
            return fail(format!("as {}, delegated: {layer}", who.name()));
        }
        check_limits(&context.guest, who, |command| delegated(who, command))?;
    }
    Ok("memory and processes bounded by cgroup, as root and as a user".to_owned())
}

/// Somebody who logged in by ssh has them too, without knowing about groups.
pub(super) fn login(context: &mut StoryContext) -> StoryResult {
    for who in GuestUser::BOTH {
        let said = context.guest.run(who, "hermetic doctor", LONG)?;
        let said = expect_success(who, "doctor", said)?;
        if let Some(layer) = weaker(&said.out) {
            return fail(format!("as {}: {layer}", who.name()));
        }
        check_limits(&context.guest, who, str::to_owned)?;
    }
    Ok("the same limits in an ssh session, as root and as a user".to_owned())
}

/// Shared memory that is taken page by page: the kernel throws out the program's own code and reads it again,
/// for minutes on some. Whoever ends it, it does not stand still for long.
pub(super) fn stall(context: &mut StoryContext) -> StoryResult {
    const LONGEST: Duration = Duration::from_secs(100);
    let mut figures = Vec::new();
    for who in GuestUser::BOTH {
        let config = "mkdir -p stall; echo 'terminal: {container_memory: 256}' >stall/config.yaml";
        let said = context.guest.run(who, config, LONG)?;
        expect_success(who, "write a configuration", said)?;
        let greedy = "import mmap
m = mmap.mmap(-1, 1 << 30)
for at in range(0, 1 << 30, 4096): m[at] = 1
print('has-it-all')";
        let line = format!(
            "hermetic --home stall exec -- python3 -c {}",
            quoted(greedy)
        );
        let said = context.guest.run(who, &line, LONG)?;
        let took = said.took;
        if said.code.is_none_or(|code| code == 0) || took > LONGEST {
            let secs = took.as_secs();
            return fail(format!("as {}, after {secs} s: {}", who.name(), said.all()));
        }
        let by = if said.code == Some(137) {
            "the kernel"
        } else {
            "the watch"
        };
        figures.push(format!(
            "as {} by {by} after {:.0} s",
            who.name(),
            took.as_secs_f64()
        ));
    }
    Ok(format!("ended {}", figures.join(", ")))
}

/// The line of a limit that the kernel's groups do not keep, with its remedy.
fn weaker(doctor: &str) -> Option<String> {
    let mut lines = doctor.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some((state, rest)) = line.split_once(' ') else {
            continue;
        };
        let limit = LAYERS
            .iter()
            .any(|layer| rest.trim_start().starts_with(layer));
        if limit && state != "holds" {
            return Some(format!("{line} {}", lines.next().unwrap_or_default()));
        }
    }
    None
}

/// More memory and more processes than allowed are not to be had, and the sum counts: each child
/// alone stays far below the limit.
fn check_limits(
    guest: &VmGuest,
    who: GuestUser,
    run: impl Fn(&str) -> String,
) -> Result<(), StoryError> {
    let home = "/tmp/bounds-$(id -u)";
    let config = format!(
        "mkdir -p {home}; echo 'terminal: {{container_memory: 128, container_pids: 40}}' \
         >{home}/config.yaml; echo {home}"
    );
    let said = expect_success(who, "write a configuration", guest.run(who, &config, LONG)?)?;
    let home = said.out.trim();
    // Files in memory are of nobody's data segment: only a group counts them.
    let memory = "python3 - <<'END'
import mmap, os
for child in range(6):
    if os.fork() == 0:
        m = mmap.mmap(-1, 60 << 20)
        for at in range(0, 60 << 20, 4096): m[at] = 1
        print('has', child, flush=True)
        import time; time.sleep(5)
        os._exit(0)
for child in range(6): os.wait()
END";
    let exec = format!("/usr/local/bin/hermetic --home {home} exec -- bash -c");
    let line = run(&format!("{exec} {}", quoted(memory)));
    let said = guest.run(who, &line, LONG)?;
    let had = said.out.matches("has ").count();
    if said.code.is_none() || had >= 3 {
        return fail(format!(
            "as {}, 128 MB allowed, {had} children had 60 MB each: {}",
            who.name(),
            said.all()
        ));
    }
    let processes = "n=0; for i in $(seq 80); do sleep 20 2>/dev/null & done 2>/dev/null; \
                     jobs -r | wc -l";
    let line = run(&format!("{exec} {}", quoted(processes)));
    let said = guest.run(who, &line, LONG)?;
    let alive: Option<u32> = said.out.trim().parse().ok();
    // Bash that cannot fork gives up with this code.
    let refused = said.code == Some(254) || alive.is_some_and(|alive| alive < 40);
    if !refused {
        return fail(format!(
            "as {}, 40 processes allowed, 80 started: {}",
            who.name(),
            said.all()
        ));
    }
    Ok(())
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weaker_limit_is_found_with_its_remedy() {
        let held =
            "native\n  holds   process limit  pids.max\n  holds   memory limit   memory.max\n";
        assert_eq!(weaker(held), None);
        let said = "  weaker  identity       one user\n  holds   process limit  pids.max\n  \
                    weaker  memory limit   RLIMIT_DATA\n                 = run as root\n";
        let found = weaker(said);
        assert_eq!(
            found.as_deref(),
            Some("weaker  memory limit   RLIMIT_DATA = run as root")
        );
    }
}
