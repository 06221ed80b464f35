//! Programs that let others in: tunnels, remote desktops, shells behind a web page, and services that
//! listen to everybody without a password.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::ExpandedText;

const INTERNET: &str = "opens this machine to the internet";
const NETWORK: &str = "opens this machine to the network";

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["code", "code-insiders", "code-tunnel", "codium", "cursor"], &["tunnel|serve-web"], HarmCategory::Exfiltration, INTERNET),
    HarmfulAct::new(&["code-server", "openvscode-server"], &[], HarmCategory::Exfiltration, NETWORK).with(&["--auth=none", "--bind-addr=0.0.0.0:8080", "--host=0.0.0.0", "--without-connection-token"]),
    HarmfulAct::new(&["devtunnel"], &["host"], HarmCategory::Exfiltration, INTERNET),
    HarmfulAct::new(&["tailscale"], &["funnel|serve"], HarmCategory::Exfiltration, INTERNET),
    HarmfulAct::new(&["tailscale"], &["up|set"], HarmCategory::Exfiltration, NETWORK).with(&["--ssh", "--advertise-exit-node", "--advertise-routes"]),
    HarmfulAct::new(&["zrok"], &["share|reserve"], HarmCategory::Exfiltration, INTERNET),
    HarmfulAct::new(&["lt", "localtunnel", "serveo", "pagekite", "pagekite.py", "pktriot", "inlets", "rathole", "gost", "playit", "telebit", "tunnelmole", "tmole", "expose", "sish", "loophole", "holesail"], &[], HarmCategory::Exfiltration, INTERNET).unless(&["--version"]),
    HarmfulAct::new(&["frpc", "frps", "bore", "ngrok", "chisel", "ligolo-proxy", "ligolo-agent", "revsocks", "gsocket", "gs-netcat", "nps", "npc", "iodine", "dnscat2", "ptunnel", "wstunnel", "cloudflared"], &[], HarmCategory::Exfiltration, INTERNET).unless(&["--version", "version", "-v", "help", "update"]),
    HarmfulAct::new(&["ttyd", "gotty", "wetty", "shellinaboxd", "sshx", "tmate", "upterm", "teleconsole", "webssh", "wssh"], &[], HarmCategory::ReverseShell, "puts a shell on the network").unless(&["--version", "-v"]),
    HarmfulAct::new(&["x11vnc", "vncserver", "tigervncserver", "x0vncserver", "vino-server", "wayvnc", "krfb", "xrdp", "rustdesk", "anydesk", "teamviewer", "TurboVNC"], &[], HarmCategory::Exfiltration, "shares the screen with the network").unless(&["--version", "-version", "-list", "-kill"]),
    HarmfulAct::new(&["sshd", "dropbear", "telnetd", "in.telnetd", "rshd", "rlogind", "inetd", "xinetd"], &[], HarmCategory::ReverseShell, "lets others log in").unless(&["-t", "-T", "-V", "--version", "-G"]),
    HarmfulAct::new(&["microsocks", "3proxy", "danted", "sockd", "tinyproxy", "ssocks", "srelay"], &[], HarmCategory::Exfiltration, "passes on connections of others").unless(&["-v", "--version"]),
    HarmfulAct::new(&["kubectl", "oc"], &["proxy|port-forward"], HarmCategory::Exfiltration, NETWORK).with(&["--address=0.0.0.0", "--accept-hosts", "--disable-filter"]),
    HarmfulAct::new(&["dockerd", "containerd"], &[], HarmCategory::Privilege, "starts a container engine"),
    HarmfulAct::new(&["mongod"], &[], HarmCategory::Exfiltration, NETWORK).with(&["--bind_ip_all", "--noauth"]),
    HarmfulAct::new(&["rclone"], &["serve"], HarmCategory::Exfiltration, "shares files with the network"),
    HarmfulAct::new(&["smbd", "vsftpd", "proftpd", "pure-ftpd", "nfsd", "exportfs"], &[], HarmCategory::Exfiltration, "shares files with the network").unless(&["-v", "-V", "--version"]),
    HarmfulAct::new(&["ipmitool"], &["user|chassis|lan|mc|raw|sol"], HarmCategory::Privilege, "changes the machine behind this machine").unless(&["list", "status", "info", "print"]),
    HarmfulAct::new(&["xhost"], &[], HarmCategory::Privilege, "opens the screen to others").with(&["+"]),
    HarmfulAct::new(&["xterm", "xeyes", "urxvt"], &[], HarmCategory::ReverseShell, "shows a shell on another machine's screen").with(&["-display"]),
    HarmfulAct::new(&["nc", "ncat", "netcat"], &[], HarmCategory::ReverseShell, "passes on connections of others").with(&["--broker", "--chat", "--proxy-type"]),
    HarmfulAct::new(&["socket"], &[], HarmCategory::ReverseShell, "connects a program to the network").with(&["-p"]),
];

/// `TCP-LISTEN:2222,fork TCP:127.0.0.1:22`: whoever connects is let through to something of this machine.
fn passes_on(args: &[ExpandedText]) -> bool {
    let upper = |arg: &ExpandedText| arg.s.to_ascii_uppercase();
    let listens = |arg: &ExpandedText| {
        let address = upper(arg);
        let bound = ["BIND=127.", "BIND=LOCALHOST", "BIND=[::1]", "RANGE="];
        address
            .split(',')
            .next()
            .is_some_and(|kind| kind.contains("-LISTEN:") && !kind.starts_with("UNIX"))
            && !bound.iter().any(|bound| address.contains(bound))
    };
    let leads_in = |arg: &ExpandedText| {
        let address = upper(arg);
        address.starts_with("UNIX")
            || [":127.", ":LOCALHOST"]
                .iter()
                .any(|own| address.contains(own))
    };
    args.iter().any(listens) && args.iter().any(|arg| !listens(arg) && leads_in(arg))
}

/// Every address of the machine, as options spell it.
fn everywhere(value: &str) -> bool {
    value.starts_with("0.0.0.0")
        || value.starts_with("[::]")
        || value == "::"
        || value.contains("://0.0.0.0")
}

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    let args = command.args();
    let listens = args.iter().any(|arg| {
        everywhere(&arg.s)
            || arg
                .s
                .split_once('=')
                .is_some_and(|(_, value)| everywhere(value))
    });
    if program == "socat" && passes_on(args) {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, NETWORK));
    }
    let unguarded = args.iter().any(|arg| {
        let s = arg.s.as_str();
        matches!(
            s,
            "--auth=none" | "none" | "--no-auth" | "--noauth" | "-nopw" | "--allow-anonymous"
        ) || s.ends_with(".token=")
            || s.ends_with(".token=''")
            || s.ends_with(".password=")
    });
    // What these serve is a machine, not a page.
    let powerful = matches!(
        program,
        "code-server"
            | "jupyter"
            | "jupyter-lab"
            | "jupyter-notebook"
            | "redis-server"
            | "mongod"
            | "dockerd"
            | "etcd"
            | "elasticsearch"
            | "node-red"
            | "consul"
            | "nomad"
            | "vault"
            | "memcached"
            | "rstudio-server"
            | "ollama"
            | "ray"
            | "gdbserver"
            | "lldb-server"
            | "adb"
            | "mysqld"
            | "postgres"
            | "cockpit-ws"
    );
    let forwarded = matches!(program, "kubectl" | "oc")
        && matches!(command.operand(0), "proxy" | "port-forward")
        && listens;
    if forwarded {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, NETWORK));
    }
    if matches!(program, "systemctl" | "service")
        && command.operands().any(|text| {
            ["telnet", "rsh", "rlogin", "vnc"]
                .iter()
                .any(|name| text.s.starts_with(name))
        })
        && command
            .operands()
            .any(|text| matches!(text.s.as_str(), "start" | "restart" | "enable"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            "lets others log in",
        ));
    }
    if matches!(program, "code" | "codium" | "cursor")
        && command
            .values_of("--install-extension")
            .iter()
            .any(|name| name.ends_with(".vsix"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Persistence,
            "loads code into an editor",
        ));
    }
    if powerful && listens || powerful && unguarded && program != "redis-server" {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, NETWORK));
    }
    let open = command
        .args()
        .windows(2)
        .any(|pair| pair[0].s == "--protected-mode" && pair[1].s == "no");
    if program == "redis-server" && open {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, NETWORK));
    }
    if matches!(program, "npx" | "bunx" | "pnpm")
        && args.iter().any(|arg| {
            matches!(
                arg.s.as_str(),
                "localtunnel" | "ngrok" | "untun" | "tunnelmole" | "lt"
            )
        })
    {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, INTERNET));
    }
    let forwards = program == "autossh"
        && args
            .iter()
            .any(|arg| arg.s.starts_with("-R") || arg.s.ends_with("NR"))
        || program == "ssh"
            && args.iter().any(|arg| {
                arg.s.starts_with('-')
                    && !arg.s.starts_with("--")
                    && arg.s.ends_with('R')
                    && arg.s.len() < 6
            });
    // `-g` lets everybody in the network use what is forwarded.
    let plain = |letter: char| {
        args.iter().take(8).any(|arg| {
            arg.s.starts_with('-')
                && !arg.s.starts_with("--")
                && arg.s.len() < 6
                && arg.s[1..].contains(letter)
        })
    };
    if program == "ssh" && plain('g') && (plain('D') || plain('L')) {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, NETWORK));
    }
    if forwards {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "opens this machine to another host (ssh -R)",
        ));
    }
    let opened = matches!(program, "ssh" | "autossh")
        && ["-L", "-D"]
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .any(|value| everywhere(&value) || value.starts_with("*:"));
    if opened {
        findings.push(HarmFinding::dangerous(HarmCategory::Exfiltration, NETWORK));
    }
    const DEVICES: &[&str] = &[
        "x11grab",
        "alsa",
        "pulse",
        "avfoundation",
        "v4l2",
        "kmsgrab",
        "fbdev",
    ];
    if program == "ffmpeg"
        && args
            .windows(2)
            .any(|pair| pair[0].s == "-f" && DEVICES.contains(&pair[1].s.as_str()))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "records the screen, the camera or the microphone",
        ));
    }
    if program == "node"
        && args
            .iter()
            .any(|arg| arg.s.starts_with("--inspect") && arg.s.contains("0.0.0.0"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::ReverseShell,
            "lets others run code in Node",
        ));
    }
    findings
}
