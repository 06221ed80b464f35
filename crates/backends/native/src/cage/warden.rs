//! The last step: this process, sealed, serves.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use hermetic_warden::serve::{CreatorLink, ServeConfig, serve as serve_as_warden};

use crate::plan::{CagePlan, HOME, WORKSPACE};

/// What every program expects to find; the plan's own words come over them.
const DEFAULTS: [(&str, &str); 6] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("HOME", HOME),
    ("USER", "agent"),
    ("LOGNAME", "agent"),
    ("LANG", "C.UTF-8"),
    ("TERM", "xterm-256color"),
];

pub(crate) fn serve(
    plan: CagePlan,
    listener: OwnedFd,
    first: OwnedFd,
    oom_counter: Option<OwnedFd>,
) -> ExitCode {
    serve_as_warden(ServeConfig {
        listener,
        first: Some(CreatorLink::Socket(first)),
        lifetime: plan.lifetime,
        oom_counter,
        is_init: true,
        env: environment(plan.env),
        cwd: WORKSPACE.into(),
        tied: plan.tied,
    })
}

fn environment(asked: BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    let mut env: BTreeMap<String, String> = DEFAULTS
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    env.extend(asked);
    env.into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}
