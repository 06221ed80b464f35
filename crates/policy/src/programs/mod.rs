//! What programs do, as far as anybody could mind.
//!
//! One file for each family. Where a program and a subcommand are enough, the knowledge is a
//! table of [`HarmfulAct`]s; where arguments decide, it is a function.

mod acts;
mod applescript;
mod attack;
pub(crate) mod cloud;
mod cloud_rights;
pub(crate) mod containers;
pub(crate) mod databases;
mod disks;
mod essentials;
mod exhaustion;
mod exposure;
mod files;
mod git;
mod handed;
mod injection;
mod looks;
mod machine;
mod macos;
mod network;
mod own;
mod packages;
mod power;
mod privilege;
mod processes;
mod property_lists;
pub(crate) mod protected;
mod raw_disks;
mod reach;
mod remote_deletes;
pub(crate) mod secrets;
mod services;
mod system;
mod telling;
mod texts;
mod unknown;
mod uploads;
mod whole_system;

pub(crate) use acts::HarmfulAct;
pub(crate) use essentials::is_essential_package;
pub(crate) use texts::takes_texts;
pub(crate) use uploads::sent as sent_files;

use crate::context::JudgementContext;
use crate::effective::ReducedCommand;
use crate::finding::HarmFinding;

type Family = fn(&ReducedCommand, &ProgramJudge<'_>) -> Vec<HarmFinding>;

const FAMILIES: &[Family] = &[
    protected::judge,
    files::judge,
    disks::judge,
    secrets::judge,
    network::judge,
    uploads::judge,
    attack::judge,
    exposure::judge,
    exhaustion::judge,
    privilege::judge,
    processes::judge,
    services::judge,
    system::judge,
    macos::judge,
    git::judge,
    containers::judge,
    cloud::judge,
    cloud_rights::judge,
    databases::judge,
    remote_deletes::judge,
    packages::judge,
    injection::judge,
    own::judge,
    power::judge,
    raw_disks::judge,
    whole_system::judge,
    essentials::judge,
    machine::judge,
    telling::judge,
    handed::judge,
    unknown::judge,
];

/// What the families look at besides the command.
pub(crate) struct ProgramJudge<'a> {
    pub(crate) context: &'a JudgementContext,
    pub(crate) cwd: String,
}

pub(crate) fn judge(command: &ReducedCommand, context: &JudgementContext) -> Vec<HarmFinding> {
    let judge = ProgramJudge {
        context,
        cwd: command
            .cwd
            .clone()
            .unwrap_or_else(|| context.workspace.clone()),
    };
    FAMILIES
        .iter()
        .flat_map(|family| family(command, &judge))
        .collect()
}

/// Names that a pattern in command position is held against, the worst first.
pub(crate) fn names() -> &'static [&'static str] {
    &[
        "rm",
        "dd",
        "mkfs",
        "mkfs.ext4",
        "shutdown",
        "reboot",
        "halt",
        "poweroff",
        "shred",
        "wipefs",
        "bash",
        "sh",
        "cat",
        "chmod",
        "chown",
        "mv",
        "cp",
        "kill",
        "curl",
        "wget",
        "nc",
        "python3",
        "perl",
        "sudo",
        "find",
        "tee",
        "truncate",
        "crontab",
        "systemctl",
        "init",
        "killall",
        "pkill",
        "iptables",
        "passwd",
        "base64",
        "env",
        "tar",
        "head",
        "tail",
        "less",
    ]
}

pub(crate) fn is_known(name: &str) -> bool {
    names().contains(&name)
}
