//! Programs that let others in: tunnels, remote desktops, shells behind a web page, and services that
//! listen to everybody without a password.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};

const INTERNET: &str = "opens this machine to the internet";
const NETWORK: &str = "opens this machine to the network";

#[rustfmt::skip]
const ACTS: &[Act] = &[
    Act::new(&["code", "code-insiders", "code-tunnel", "codium", "cursor"], &["tunnel|serve-web"], Category::Exfiltration, INTERNET),
    Act::new(&["code-server", "openvscode-server"], &[], Category::Exfiltration, NETWORK).with(&["--auth=none", "--bind-addr=0.0.0.0:8080", "--host=0.0.0.0", "--without-connection-token"]),
    Act::new(&["devtunnel"], &["host"], Category::Exfiltration, INTERNET),
    Act::new(&["tailscale"], &["funnel|serve"], Category::Exfiltration, INTERNET),
    Act::new(&["tailscale"], &["up|set"], Category::Exfiltration, NETWORK).with(&["--ssh", "--advertise-exit-node", "--advertise-routes"]),
    Act::new(&["zrok"], &["share|reserve"], Category::Exfiltration, INTERNET),
    Act::new(&["lt", "localtunnel", "serveo", "pagekite", "pagekite.py", "pktriot", "inlets", "rathole", "gost", "playit", "telebit", "tunnelmole", "tmole", "expose", "sish", "loophole", "holesail"], &[], Category::Exfiltration, INTERNET).unless(&["--version"]),
    Act::new(&["frpc", "frps", "bore", "ngrok", "chisel", "ligolo-proxy", "ligolo-agent", "revsocks", "gsocket", "gs-netcat", "nps", "npc", "iodine", "dnscat2", "ptunnel", "wstunnel", "cloudflared"], &[], Category::Exfiltration, INTERNET).unless(&["--version", "version", "-v", "help", "update"]),
    Act::new(&["ttyd", "gotty", "wetty", "shellinaboxd", "sshx", "tmate", "upterm", "teleconsole", "webssh", "wssh"], &[], Category::ReverseShell, "puts a shell on the network").unless(&["--version", "-v"]),
    Act::new(&["x11vnc", "vncserver", "tigervncserver", "x0vncserver", "vino-server", "wayvnc", "krfb", "xrdp", "rustdesk", "anydesk", "teamviewer", "TurboVNC"], &[], Category::Exfiltration, "shares the screen with the network").unless(&["--version", "-version", "-list", "-kill"]),
    Act::new(&["sshd", "dropbear", "telnetd", "in.telnetd", "rshd", "rlogind", "inetd", "xinetd"], &[], Category::ReverseShell, "lets others log in").unless(&["-t", "-T", "-V", "--version", "-G"]),
    Act::new(&["microsocks", "3proxy", "danted", "sockd", "tinyproxy", "ssocks", "srelay"], &[], Category::Exfiltration, "passes on connections of others").unless(&["-v", "--version"]),
    Act::new(&["kubectl", "oc"], &["proxy|port-forward"], Category::Exfiltration, NETWORK).with(&["--address=0.0.0.0", "--accept-hosts", "--disable-filter"]),
    Act::new(&["dockerd", "containerd"], &[], Category::Privilege, "starts a container engine"),
    Act::new(&["mongod"], &[], Category::Exfiltration, NETWORK).with(&["--bind_ip_all", "--noauth"]),
    Act::new(&["rclone"], &["serve"], Category::Exfiltration, "shares files with the network"),
    Act::new(&["smbd", "vsftpd", "proftpd", "pure-ftpd", "nfsd", "exportfs"], &[], Category::Exfiltration, "shares files with the network").unless(&["-v", "-V", "--version"]),
    Act::new(&["ipmitool"], &["user|chassis|lan|mc|raw|sol"], Category::Privilege, "changes the machine behind this machine").unless(&["list", "status", "info", "print"]),
    Act::new(&["xhost"], &[], Category::Privilege, "opens the screen to others").with(&["+"]),
    Act::new(&["xterm", "xeyes", "urxvt"], &[], Category::ReverseShell, "shows a shell on another machine's screen").with(&["-display"]),
    Act::new(&["nc", "ncat", "netcat"], &[], Category::ReverseShell, "passes on connections of others").with(&["--broker", "--chat", "--proxy-type"]),
    Act::new(&["socket"], &[], Category::ReverseShell, "connects a program to the network").with(&["-p"]),
];

/// Every address of the machine, as options spell it.
fn everywhere(value: &str) -> bool {
    value.starts_with("0.0.0.0")
        || value.starts_with("[::]")
        || value == "::"
        || value.contains("://0.0.0.0")
}

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
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
        findings.push(Finding::dangerous(Category::Exfiltration, NETWORK));
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
        findings.push(Finding::dangerous(
            Category::ReverseShell,
            "lets others log in",
        ));
    }
    if matches!(program, "code" | "codium" | "cursor")
        && command
            .values_of("--install-extension")
            .iter()
            .any(|name| name.ends_with(".vsix"))
    {
        findings.push(Finding::dangerous(
            Category::Persistence,
            "loads code into an editor",
        ));
    }
    if powerful && listens || powerful && unguarded && program != "redis-server" {
        findings.push(Finding::dangerous(Category::Exfiltration, NETWORK));
    }
    let open = command
        .args()
        .windows(2)
        .any(|pair| pair[0].s == "--protected-mode" && pair[1].s == "no");
    if program == "redis-server" && open {
        findings.push(Finding::dangerous(Category::Exfiltration, NETWORK));
    }
    if matches!(program, "npx" | "bunx" | "pnpm")
        && args.iter().any(|arg| {
            matches!(
                arg.s.as_str(),
                "localtunnel" | "ngrok" | "untun" | "tunnelmole" | "lt"
            )
        })
    {
        findings.push(Finding::dangerous(Category::Exfiltration, INTERNET));
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
    if forwards {
        findings.push(Finding::dangerous(
            Category::Exfiltration,
            "opens this machine to another host (ssh -R)",
        ));
    }
    if program == "node"
        && args
            .iter()
            .any(|arg| arg.s.starts_with("--inspect") && arg.s.contains("0.0.0.0"))
    {
        findings.push(Finding::dangerous(
            Category::ReverseShell,
            "lets others run code in Node",
        ));
    }
    findings
}
