//! Who may write, and who may say yes.

use std::collections::BTreeSet;

use hermetic_app as app;
use hermetic_config::{Config, PlatformConfig};

use super::ChecklistLine;
use super::machine::MachineFacts;

pub(super) fn lines(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    vec![
        allowlists(config),
        approvers(config, machine.paired_operators),
    ]
}

fn allowlists(config: &Config) -> ChecklistLine {
    let platforms = config.platforms();
    if platforms.allow_all_users || platforms.allowed_users.iter().any(|one| one == "*") {
        return ChecklistLine::weak(
            "people",
            "everybody may write, on every platform",
            "take GATEWAY_ALLOW_ALL_USERS out, and list people or pair them",
        );
    }
    let is_open = |platform: &&PlatformConfig| {
        platform.allow_all_users || platform.allowed_users.iter().any(|one| one == "*")
    };
    let open: Vec<_> = spoken(config).filter(is_open).map(|one| one.name).collect();
    match open.is_empty() {
        true => ChecklistLine::fine("people", "only who is listed or was let in by a code"),
        false => ChecklistLine::weak(
            "people",
            format!("everybody may write on {}", open.join(", ")),
            "list people (`*` stands for everybody), or leave the list out and pair them",
        ),
    }
}

/// Where nobody is named, everybody on an allowlist is an operator.
fn approvers(config: &Config, paired_operators: usize) -> ChecklistLine {
    let named = config.approvals().approvers.len();
    let admins = spoken(config)
        .map(|platform| platform.admins.len())
        .sum::<usize>();
    // One person has a number on each platform: what counts is how many are listed together on one.
    let everywhere = &config.platforms().allowed_users;
    let together = spoken(config).map(|platform| {
        let listed = platform.allowed_users.iter().chain(everywhere);
        listed.collect::<BTreeSet<_>>().len()
    });
    let listed = together.max().unwrap_or_default();
    match (named + admins, listed, paired_operators) {
        (0, 0, 0) => ChecklistLine::weak(
            "roles",
            "nobody can answer a question: nobody is listed, and nobody was let in as operator",
            "approvals.approvers: [telegram:4711], or `hermetic pairing approve --operator`",
        ),
        (0, 0, paired) => ChecklistLine::fine("roles", format!("{paired} let in as operator")),
        (0, 1, _) => ChecklistLine::fine("roles", "the one person who is listed answers questions"),
        (0, listed, _) => ChecklistLine::weak(
            "roles",
            format!("all {listed} people who are listed may approve, for everybody"),
            "approvals.approvers: [telegram:4711] names those who may",
        ),
        (some, ..) => ChecklistLine::fine("roles", format!("{some} may approve")),
    }
}

fn spoken(config: &Config) -> impl Iterator<Item = &PlatformConfig> {
    let enabled = config.platforms().enabled();
    enabled.filter(|platform| app::speaks(platform))
}
