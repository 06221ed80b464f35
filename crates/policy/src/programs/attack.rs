//! Reverse shells, tunnels and tools that exist to attack.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(
        &[
            "msfvenom",
            "msfconsole",
            "metasploit",
            "sliver",
            "empire",
            "pwncat",
            "pwncat-cs",
            "weevely",
            "chisel",
            "ligolo",
            "beef-xss",
            "evil-winrm",
            "rcat",
            "rustcat",
            "revsh",
            "frps",
            "dnscat2",
        ],
        &[],
        HarmCategory::ReverseShell,
        "is a tool for breaking in",
    ),
    HarmfulAct::new(
        &[
            "hydra",
            "medusa",
            "ncrack",
            "sqlmap",
            "responder",
            "bettercap",
            "ettercap",
            "crackmapexec",
            "netexec",
            "impacket-secretsdump",
            "secretsdump.py",
            "patator",
            "aircrack-ng",
            "airodump-ng",
        ],
        &[],
        HarmCategory::ReverseShell,
        "is a tool for attacking others",
    ),
    HarmfulAct::new(
        &[
            "xmrig", "minerd", "cpuminer", "ethminer", "cgminer", "t-rex", "nbminer",
        ],
        &[],
        HarmCategory::ReverseShell,
        "mines coins",
    ),
    HarmfulAct::new(
        &["ngrok", "cloudflared", "localtunnel", "frpc", "bore"],
        &["http|tcp|tunnel|tls|start|local"],
        HarmCategory::Exfiltration,
        "opens this machine to the internet",
    ),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    if let Some(tool) = known_tool(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            format!("{tool} is a tool for breaking in"),
        ));
    }
    if command
        .args()
        .iter()
        .any(|arg| arg.s.contains("stratum+") || arg.s.contains("stratum2+"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            "mines coins",
        ));
    }
    let shell = HarmFinding::dangerous(
        HarmCategory::ReverseShell,
        "connects a shell to the network",
    );
    if matches!(
        program,
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd"
    ) {
        let runs = command.args().iter().any(|arg| {
            matches!(
                arg.s.as_str(),
                "-e" | "-c" | "--exec" | "--sh-exec" | "--lua-exec"
            ) || arg.s.starts_with("--exec=")
                || arg.s.starts_with("--sh-exec=")
                || (arg.s.starts_with('-')
                    && !arg.s.starts_with("--")
                    && arg.s.len() > 2
                    && arg.s[1..].chars().all(|c| c.is_ascii_alphabetic())
                    // What follows these letters is their value. `x` and `T` are plain flags of GNU's.
                    && arg.s.split(['X', 'P', 's', 'w', 'i', 'q', 'O', 'I']).next()
                        .is_some_and(|flags| flags.contains(['e', 'c'])))
        });
        if runs {
            findings.push(shell.clone());
        }
        // `mkfifo f; nc h p < f | sh > f`: the pipe into a shell is found there.
    }
    if program == "socat" {
        let joined: String = command
            .args()
            .iter()
            .map(|arg| arg.s.to_lowercase())
            .collect::<Vec<_>>()
            .join(" ");
        let net = joined.contains("tcp")
            || joined.contains("udp")
            || joined.contains("openssl")
            || joined.contains("ssl:");
        if net && (joined.contains("exec:") || joined.contains("system:")) {
            findings.push(shell.clone());
        }
    }
    let network = |path: &str| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/");
    let connects = command
        .writes
        .iter()
        .chain(&command.reads)
        .any(|file| network(&file.s));
    if connects
        && matches!(
            program,
            "sh" | "bash" | "zsh" | "dash" | "ksh" | "exec" | ""
        )
    {
        findings.push(shell.clone());
    }
    if program == "exec" && connects {
        findings.push(shell.clone());
    }
    if matches!(program, "bash" | "sh" | "zsh")
        && command.short('i')
        && (command.input.present && command.input.taint.has(crate::text::TaintSet::NETWORK))
    {
        findings.push(shell);
    }
    if program == "ztcp" || program == "zmodload" && command.has_arg("zsh/net/tcp") {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            "opens a network connection of the shell",
        ));
    }
    if program == "ssh"
        && (command.short('R') || command.args().iter().any(|arg| arg.s.starts_with("-R")))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "opens this machine to another host (ssh -R)",
        ));
    }
    // Nothing, or a line such as `Q`, ends the handshake that people look at.
    let says_something = command.input.present
        && command
            .input
            .known
            .as_ref()
            .is_none_or(|text| text.trim().len() > 16)
        && !command.reads.iter().any(|file| file.s == "/dev/null");
    if program == "openssl" && command.operand(0) == "s_client" && says_something {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "sends data through a raw TLS connection",
        ));
    }
    if matches!(program, "telnet")
        && command.input.present
        && command.input.known.is_none()
        && command.input.taint != crate::text::TaintSet::NONE
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            "connects a command to the network with telnet",
        ));
    }
    if matches!(program, "mknod" | "mkfifo")
        && command
            .operands()
            .any(|text| text.s.contains("/tmp/f") || text.s.contains("backpipe"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            "makes the pipe of a well-known reverse shell",
        ));
    }
    findings
}

/// A script that is known by its name, however it is started.
fn known_tool(command: &ReducedCommand) -> Option<String> {
    #[rustfmt::skip]
    const TOOLS: &[&str] = &[
        "lazagne", "linpeas", "winpeas", "linenum", "lse", "mimipenguin", "mimipy", "psexec", "smbexec", "wmiexec",
        "atexec", "dcomexec", "secretsdump", "getnpusers", "getuserspns", "ntlmrelayx", "autosuid", "pspy", "pspy64",
        "pspy32", "linux-exploit-suggester", "les", "traitor", "deepce", "cdk", "peirates", "swaks", "rubeus",
        "bloodhound-python", "kerbrute", "ligolo-ng", "gost", "revsocks", "dnscat2", "dnscat", "iodine", "icmpsh",
        "ptunnel", "reptile", "diamorphine", "suterusu", "beroot", "unix-privesc-check", "pacu", "truffleproc",
        "firefox_decrypt", "chromepass", "hackbrowserdata", "3snake", "sudo_sniff", "keysniffer", "logkeys",
    ];
    let first = std::iter::once(command.program());
    let interpreted = matches!(
        command.program(),
        "python" | "python2" | "python3" | "perl" | "ruby" | "bash" | "sh" | "zsh" | "node" | "php"
    );
    let scripts = command
        .operands()
        .take(1)
        .filter(|_| interpreted)
        .map(|text| crate::effective::base_name(&text.s));
    first.chain(scripts).find_map(|name| {
        let lower = name.to_lowercase();
        let stem = [".py", ".sh", ".pl", ".rb", ".elf", ".bin"]
            .iter()
            .find_map(|end| lower.strip_suffix(end))
            .unwrap_or(&lower);
        // `chisel_1.7.6_linux_amd64`, `xmrig-6.11`.
        let built = lower
            .split_once(['_', '-', '.'])
            .is_some_and(|(name, rest)| {
                const BUILT: &[&str] = &[
                    "chisel", "ligolo", "frpc", "frps", "xmrig", "ngrok", "gost", "mimikatz",
                    "linpeas", "rcat", "pwncat", "revsh", "merlin", "sliver",
                ];
                BUILT.contains(&name)
                    && [
                        "linux", "darwin", "amd64", "x64", "x86", "arm", "exe", "1", "2", "3", "6",
                    ]
                    .iter()
                    .any(|mark| rest.contains(mark))
            });
        if built {
            return Some(name.to_owned());
        }
        // Short names are somebody's own unless the ending says what it is.
        let sure = stem.len() > 3 || stem.len() < lower.len();
        (sure && TOOLS.contains(&stem)).then(|| name.to_owned())
    })
}
