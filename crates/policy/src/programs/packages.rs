//! Package managers: installing into a project is work, other sources and the system are not.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(
        &[
            "apt",
            "apt-get",
            "aptitude",
            "dnf",
            "yum",
            "zypper",
            "apk",
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
        HarmCategory::SystemFile,
        "removes programs from the machine",
    )
    .unless(&["-s", "--simulate", "--dry-run", "--help", "-n"]),
    HarmfulAct::new(
        &["pacman", "yay", "paru"],
        &[],
        HarmCategory::SystemFile,
        "removes programs from the machine",
    )
    .with(&["-R"]),
    HarmfulAct::new(
        &["dpkg", "rpm"],
        &[],
        HarmCategory::SystemFile,
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
    HarmfulAct::new(
        &["apt-key", "add-apt-repository", "rpmkeys"],
        &[],
        HarmCategory::Persistence,
        "changes where packages come from",
    )
    .unless(&["list", "--list", "--help"]),
    HarmfulAct::new(
        &["rpm"],
        &[],
        HarmCategory::Persistence,
        "changes where packages come from",
    )
    .with(&["--import"]),
    HarmfulAct::new(
        &["npm", "yarn", "pnpm", "bun"],
        &["config|c", "set"],
        HarmCategory::Persistence,
        "changes what a package manager runs or trusts",
    )
    .with(&[
        "script-shell",
        "registry",
        "npmRegistryServer",
        "enableStrictSsl",
        "git",
        "node-options",
        "prefix",
        "unsafe-perm",
        "cafile",
        "ignore-scripts",
        "strict-ssl",
    ]),
    HarmfulAct::new(
        &["pip", "pip3"],
        &["config", "set"],
        HarmCategory::Persistence,
        "changes where packages come from",
    ),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    // `npm pkg set scripts.postinstall=…`, `go env -w GOPROXY=…`
    let told = |starts: &[&str]| {
        command
            .args()
            .iter()
            .any(|arg| starts.iter().any(|start| arg.s.starts_with(start)))
    };
    let hooks = [
        "scripts.preinstall=",
        "scripts.postinstall=",
        "scripts.install=",
        "scripts.prepare=",
    ];
    if matches!(program, "npm" | "pnpm") && command.operand(0) == "pkg" && told(&hooks) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Persistence,
            "makes installing a package run something",
        ));
    }
    let sources = [
        "GOPROXY=http",
        "GONOSUMDB=",
        "GONOSUMCHECK=",
        "GOFLAGS=-toolexec",
        "GOSUMDB=off",
        "GOINSECURE=",
    ];
    if program == "go" && command.operand(0) == "env" && command.short('w') && told(&sources) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Persistence,
            "changes where packages come from",
        ));
    }
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                "installs and runs packages from an unusual place",
            ));
        }
    }
    if command.has_arg("--break-system-packages") {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SystemFile,
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                "runs what it downloads",
            ));
        }
    }
    let plain = |text: &crate::text::ExpandedText| {
        text.s.starts_with("http://")
            && !text.s.starts_with("http://localhost")
            && !text.s.starts_with("http://127.")
    };
    let by_address = match program {
        "flatpak" | "snap" | "apk" | "pkg" | "emerge" => {
            command.operands().any(|text| text.s.starts_with("http"))
        }
        "brew" if matches!(command.operand(0), "install" | "reinstall") => {
            command.operands().any(|text| text.s.starts_with("http"))
        }
        "cpan" | "cpanm" | "luarocks" | "gem" | "nimble" | "opam" => {
            command.operands().any(|text| text.s.starts_with("http"))
        }
        "npm" | "pnpm" | "yarn" | "bun" | "pip" | "pip3" | "pipx" | "uv" => {
            command.operands().any(|text| {
                text.s.starts_with("git+")
                    && !["github.com", "gitlab.com", "bitbucket.org"]
                        .iter()
                        .any(|forge| text.s.contains(forge))
            })
        }
        "brew" => {
            command.operand(0) == "tap"
                && command.operands().skip(2).any(|text| {
                    text.s.contains("://")
                        && ![
                            "github.com/",
                            "gitlab.com/",
                            "codeberg.org/",
                            "bitbucket.org/",
                        ]
                        .iter()
                        .any(|forge| text.s.contains(forge))
                })
        }
        "ansible-pull" | "chef-client" | "chef-solo" | "salt-call" => {
            command.args().iter().any(|arg| arg.s.contains("://"))
        }
        "git" => command.operand(0) == "clone" && command.operands().any(plain),
        "npx" | "bunx" => command.operands().next().is_some_and(|text| {
            text.s.starts_with("github:")
                || text.s.starts_with("git+")
                || text.s.starts_with("gist:")
        }),
        "twine" => command
            .values_of("--repository-url")
            .iter()
            .any(|url| !official(url)),
        _ => false,
    };
    if by_address {
        findings.push(HarmFinding::dangerous(
            HarmCategory::RemoteCode,
            "gets programs from an unusual place, or puts them there",
        ));
    }
    if program == "puppet"
        && command
            .args()
            .iter()
            .any(|arg| arg.taint.has(crate::text::TaintSet::NETWORK))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::RemoteCode,
            "runs what it downloads",
        ));
    }
    if matches!(
        program,
        "dpkg" | "rpm" | "apt" | "apt-get" | "dnf" | "yum" | "gdebi" | "installer"
    ) {
        let from_web = command.operands().any(|text| {
            text.s.starts_with("http") || text.s.ends_with(".deb") || text.s.ends_with(".rpm")
        });
        if from_web {
            findings.push(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
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
