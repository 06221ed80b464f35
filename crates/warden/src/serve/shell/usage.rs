//! What a command in a shell has cost.
//!
//! The shell goes on, so nobody waits for it and the kernel hands out no account. Its own time and that
//! of the children it waited for stand in `/proc`, in ticks; the difference is the command's. How much
//! memory it took at most is not to be had that way.

use std::time::Duration;

use crate::protocol::CommandUsage;
use crate::serve::process_tree::ProcessTree;

/// The shell's account so far.
pub(super) fn so_far(processes: &ProcessTree) -> CommandUsage {
    // One that has ended left its own.
    if let Some(exit) = processes.exit() {
        return exit.usage;
    }
    let read = |pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    processes
        .pid()
        .and_then(read)
        .and_then(|stat| parse(&stat))
        .unwrap_or_default()
}

pub(super) fn between(before: &CommandUsage, after: &CommandUsage) -> CommandUsage {
    CommandUsage {
        user: after.user.saturating_sub(before.user),
        system: after.system.saturating_sub(before.system),
        max_rss_bytes: 0,
    }
}

fn parse(stat: &str) -> Option<CommandUsage> {
    // The name may hold anything, parentheses too; what follows the last one is numbers.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = rest
        .split_whitespace()
        .skip(11)
        .take(4)
        .map_while(|field| field.parse().ok())
        .collect();
    let &[user, system, children_user, children_system] = ticks.as_slice() else {
        return None;
    };
    let span = |ticks: u64| {
        let a_second = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_millis(ticks.saturating_mul(1000) / a_second)
    };
    Some(CommandUsage {
        user: span(user.saturating_add(children_user)),
        system: span(system.saturating_add(children_system)),
        max_rss_bytes: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = "7 (a) b) 1 2) S 1 7 7 0 -1 4194560 500 900 0 0 100 200 300 400 20 0 1 0 5 1 1";
        let a_second = rustix::param::clock_ticks_per_second();
        let usage = parse(stat).unwrap();
        assert_eq!(usage.user.as_millis(), u128::from(400 * 1000 / a_second));
        assert_eq!(usage.system.as_millis(), u128::from(600 * 1000 / a_second));
        assert_eq!(parse("garbage"), None);
        assert_eq!(parse("7 (x) S 1 2"), None);
    }
}
