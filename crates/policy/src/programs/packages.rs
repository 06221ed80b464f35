//! Package managers: installing into a project is work, other sources and the system are not.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};

const ACTS: &[Act] = &[
    Act::new(
        &[
            "apt",
            "apt-get",
            "aptitude",
            "dnf",
            "yum",
            "zypper",
            "apk",
            "brew",
            "snap",
            "flatpak",
            "port",
            "pkg",
            "xbps-remove",
            "emerge",
            "nix-env",
            "choco",
            "winget",
            "scoop",
        ],
        &["remove|purge|autoremove|erase|uninstall|del|delete|rm|dist-upgrade|full-upgrade"],
        Category::SystemFile,
        "removes programs from the machine",
    )
    .unless(&["-s", "--simulate", "--dry-run", "--help"]),
    Act::new(
        &["pacman", "yay", "paru"],
        &[],
        Category::SystemFile,
        "removes programs from the machine",
    )
    .with(&["-R"]),
    Act::new(
        &["dpkg", "rpm"],
        &[],
        Category::SystemFile,
        "changes the machine's programs",
    )
    .with(&[
        "-r",
        "-P",
        "-e",
        "-i",
        "-U",
        "--install",
        "--upgrade",
        "--remove",
        "--purge",
        "--erase",
        "--force-all",
        "--nodeps",
    ]),
    Act::new(
        &["apt-key", "add-apt-repository", "rpmkeys"],
        &[],
        Category::Persistence,
        "changes where packages come from",
    )
    .unless(&["list", "--list", "--help"]),
    Act::new(
        &["rpm"],
        &[],
        Category::Persistence,
        "changes where packages come from",
    )
    .with(&["--import"]),
    Act::new(
        &["npm"],
        &["config", "set"],
        Category::Persistence,
        "changes what npm runs or trusts",
    )
    .with(&[
        "script-shell",
        "registry",
        "git",
        "node-options",
        "prefix",
        "unsafe-perm",
        "cafile",
        "ignore-scripts",
        "strict-ssl",
    ]),
    Act::new(
        &["pip", "pip3"],
        &["config", "set"],
        Category::Persistence,
        "changes where packages come from",
    ),
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    let installs = command.args().iter().any(|arg| {
        matches!(
            arg.s.as_str(),
            "install"
                | "i"
                | "add"
                | "download"
                | "wheel"
                | "sync"
                | "ci"
                | "exec"
                | "dlx"
                | "create"
        )
    });
    let installer = matches!(
        program,
        "pip"
            | "pip3"
            | "uv"
            | "npm"
            | "pnpm"
            | "yarn"
            | "npx"
            | "bunx"
            | "gem"
            | "cargo"
            | "go"
            | "easy_install"
            | "pipx"
            | "conda"
            | "poetry"
            | "bun"
    ) || (program.starts_with("python") && command.has_arg("pip"));
    if installer && (installs || matches!(program, "npx" | "bunx" | "easy_install")) {
        let strange = command.args().iter().any(|arg| {
            let s = arg.s.as_str();
            let numbered = s
                .rsplit("://")
                .next()
                .and_then(|rest| rest.split(['/', ':', '@']).next())
                .filter(|host| !host.starts_with("127."))
                .is_some_and(|host| host.parse::<std::net::Ipv4Addr>().is_ok());
            let url = s
                .split_once("http://")
                .map(|(_, rest)| rest)
                .filter(|rest| !rest.starts_with("localhost") && !rest.starts_with("127."));
            url.is_some()
                || numbered
                || (s.starts_with("https://")
                    && (s.ends_with(".tgz")
                        || s.ends_with(".tar.gz")
                        || s.ends_with(".zip")
                        || s.ends_with(".whl"))
                    && !official(s))
        });
        let index = [
            "--index-url",
            "-i",
            "--extra-index-url",
            "--registry",
            "--source",
            "-s",
            "--index",
            "--default-index",
            "--find-links",
            "-f",
        ]
        .iter()
        .flat_map(|flag| command.values_of(flag))
        .any(|value| value.starts_with("http") && !official(&value));
        if strange
            || index
            || command
                .args()
                .iter()
                .any(|arg| arg.s.starts_with("--trusted-host"))
        {
            findings.push(Finding::dangerous(
                Category::RemoteCode,
                "installs and runs packages from an unusual place",
            ));
        }
    }
    if command.has_arg("--break-system-packages") {
        findings.push(Finding::dangerous(
            Category::SystemFile,
            "overwrites the system's packages",
        ));
    }
    if matches!(
        program,
        "npx" | "bunx" | "deno" | "pipx" | "uvx" | "bun" | "go"
    ) {
        let remote = command.operands().any(|text| {
            (text.s.starts_with("http://") || text.s.starts_with("https://"))
                && (program != "deno" || command.has_arg("run") || command.has_arg("install"))
                && !text.s.contains("deno.land/std")
        });
        if remote {
            findings.push(Finding::dangerous(
                Category::RemoteCode,
                "runs what it downloads",
            ));
        }
    }
    if matches!(
        program,
        "dpkg" | "rpm" | "apt" | "apt-get" | "dnf" | "yum" | "gdebi" | "installer"
    ) {
        let from_web = command.operands().any(|text| {
            text.s.starts_with("http") || text.s.ends_with(".deb") || text.s.ends_with(".rpm")
        });
        if from_web {
            findings.push(Finding::dangerous(
                Category::RemoteCode,
                "installs a package that is none of the system's",
            ));
        }
    }
    findings
}

fn official(url: &str) -> bool {
    [
        "pypi.org",
        "pythonhosted.org",
        "registry.npmjs.org",
        "download.pytorch.org",
        "github.com",
        "gitlab.com",
        "registry.yarnpkg.com",
        "rubygems.org",
        "npmmirror.com",
        "conda.anaconda.org",
        "crates.io",
        "localhost",
        "127.0.0.1",
        "data.pyg.org",
        "tuna.tsinghua.edu.cn",
        "storage.googleapis.com",
    ]
    .iter()
    .any(|host| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', ':', '?']).next().unwrap_or_default();
        authority == *host || authority.ends_with(&format!(".{host}"))
    })
}
