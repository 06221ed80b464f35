//! The places themselves.

use crate::context::JudgementContext;
use crate::effective::base_name;
use crate::text::BELOW;

/// Path below a home folder, and what it holds.
const HOME: &[(&str, &str)] = &[
    (".aws/credentials", "cloud credentials"),
    (".aws/", "cloud credentials"),
    (".azure/", "cloud credentials"),
    (".config/gcloud/", "cloud credentials"),
    (".config/doctl/", "cloud credentials"),
    (".config/hcloud/", "cloud credentials"),
    (".oci/", "cloud credentials"),
    (".kube/config", "cluster credentials"),
    (".docker/config.json", "registry credentials"),
    (".docker/trust/private", "private keys"),
    (
        "Library/Application Support/com.apple.TCC/",
        "what programs may do",
    ),
    (".gnupg/", "private keys"),
    (".ssh/id_rsa", "private keys"),
    (".ssh/id_ed25519", "private keys"),
    (".composer/auth.json", "a registry token"),
    (".netrc", "passwords"),
    ("_netrc", "passwords"),
    (".pgpass", "database passwords"),
    (".my.cnf", "database passwords"),
    (".mylogin.cnf", "database passwords"),
    (".git-credentials", "git passwords"),
    (".config/gh/hosts.yml", "a GitHub token"),
    (".config/gh/", "a GitHub token"),
    (".config/hub", "a GitHub token"),
    (".npmrc", "a registry token"),
    (".pypirc", "a registry token"),
    (".gem/credentials", "a registry token"),
    (".cargo/credentials", "a registry token"),
    (".m2/settings", "a registry password"),
    (".gradle/gradle.properties", "registry passwords"),
    (".terraform.d/credentials", "cloud credentials"),
    (".terraformrc", "cloud credentials"),
    (".vault-token", "a vault token"),
    (".password-store/", "stored passwords"),
    (".local/share/keyrings/", "stored passwords"),
    (".local/share/kwalletd/", "stored passwords"),
    ("Library/Keychains/", "stored passwords"),
    (".config/google-chrome/", "browser data"),
    (".config/chromium/", "browser data"),
    (".config/BraveSoftware/", "browser data"),
    (".config/microsoft-edge/", "browser data"),
    (".mozilla/firefox/", "browser data"),
    (".mozilla", "browser data"),
    ("snap/firefox/", "browser data"),
    ("Library/Application Support/Google/Chrome/", "browser data"),
    ("Library/Application Support/Firefox/", "browser data"),
    ("Library/Application Support/BraveSoftware/", "browser data"),
    (
        "Library/Application Support/Microsoft Edge/",
        "browser data",
    ),
    ("Library/Application Support/Arc/", "browser data"),
    ("Library/Cookies/", "browser data"),
    ("Library/Safari/", "browser data"),
    ("Library/Messages/", "messages"),
    ("Library/Application Support/Slack/", "messages"),
    ("Library/Application Support/Signal/", "messages"),
    ("Library/Application Support/discord/", "messages"),
    ("Library/Mail/", "mail"),
    (
        "Library/Application Support/AddressBook/",
        "a person's contacts",
    ),
    ("Library/Application Support/Notes/", "a person's notes"),
    (
        "Library/Group Containers/group.com.apple.notes/",
        "a person's notes",
    ),
    ("Library/Calendars/", "a person's appointments"),
    (
        "Library/Application Support/MobileSync/",
        "backups of a phone",
    ),
    (".thunderbird/", "mail"),
    (".bash_history", "the shell history"),
    (".bash_sessions/", "the shell history"),
    (".zsh_sessions/", "the shell history"),
    (".zsh_history", "the shell history"),
    (".history", "the shell history"),
    (".python_history", "the shell history"),
    (".psql_history", "the database history"),
    (".mysql_history", "the database history"),
    (".rediscli_history", "the database history"),
    (".node_repl_history", "the shell history"),
    (".local/share/fish/fish_history", "the shell history"),
    (".config/rclone/rclone.conf", "cloud credentials"),
    (".s3cfg", "cloud credentials"),
    (".boto", "cloud credentials"),
    (".config/op/", "stored passwords"),
    (".config/Bitwarden", "stored passwords"),
    (".electrum/", "a wallet"),
    (".bitcoin/wallet.dat", "a wallet"),
    (".ethereum/keystore", "a wallet"),
    (".config/solana/id.json", "a wallet"),
    (".config/Signal/", "messages"),
    (".config/Slack/", "messages"),
    (".config/discord/", "messages"),
    (".local/share/TelegramDesktop/", "messages"),
    (".wallet", "a wallet"),
    (".claude/.credentials", "a model key"),
    (".codex/auth.json", "a model key"),
    (".config/openai", "a model key"),
    (".huggingface/token", "a model key"),
    (".cache/huggingface/token", "a model key"),
    (".hermes/.env", "this program's keys"),
    (".hermes/auth.json", "this program's keys"),
    (".fly/config.yml", "cloud credentials"),
    (".config/heroku", "cloud credentials"),
    (".ICEauthority", "a session key"),
    (".Xauthority", "a session key"),
    (".config/keepassxc/", "stored passwords"),
];

const SYSTEM: &[(&str, &str)] = &[
    ("/etc/shadow", "password hashes"),
    ("/var/db/dslocal/nodes/", "password hashes"),
    (
        "/Library/Application Support/com.apple.TCC/",
        "what programs may do",
    ),
    (
        "/Library/Preferences/com.apple.wifi.known-networks",
        "the networks a person uses",
    ),
    ("/private/var/db/dslocal/nodes/", "password hashes"),
    ("/etc/gshadow", "password hashes"),
    ("/etc/sudoers", "who may become root"),
    ("/etc/master.passwd", "password hashes"),
    ("/etc/security/opasswd", "password hashes"),
    ("/etc/ssh/ssh_host_", "the machine's private keys"),
    ("/etc/ssl/private/", "private keys"),
    ("/etc/pki/tls/private/", "private keys"),
    ("/etc/letsencrypt/live/", "private keys"),
    ("/etc/letsencrypt/archive/", "private keys"),
    ("/etc/kubernetes/admin.conf", "cluster credentials"),
    ("/etc/kubernetes/pki/", "private keys"),
    ("/etc/rancher/k3s/k3s.yaml", "cluster credentials"),
    ("/etc/rancher/", "cluster credentials"),
    ("/var/lib/rancher/k3s/server/", "cluster credentials"),
    ("/var/lib/rancher/rke2/server/", "cluster credentials"),
    ("/var/lib/k0s/pki/", "cluster credentials"),
    ("/var/lib/etcd/", "a cluster's memory"),
    ("/etc/kubernetes/kubelet.conf", "cluster credentials"),
    ("/etc/kubernetes/super-admin.conf", "cluster credentials"),
    (
        "/etc/kubernetes/controller-manager.conf",
        "cluster credentials",
    ),
    ("/etc/kubernetes/scheduler.conf", "cluster credentials"),
    ("/var/lib/kubelet/kubeconfig", "cluster credentials"),
    (
        "/var/snap/microk8s/current/credentials/",
        "cluster credentials",
    ),
    ("/usr/local/etc/ssh/ssh_host_", "the machine's private keys"),
    (
        "/opt/homebrew/etc/ssh/ssh_host_",
        "the machine's private keys",
    ),
    ("/conf/sshd/ssh_host_", "the machine's private keys"),
    ("/var/lib/docker/swarm/", "cluster credentials"),
    ("/opt/so/conf/", "secrets"),
    ("/var/run/secrets/", "cluster credentials"),
    ("/run/secrets/", "secrets"),
    ("/var/lib/kubelet/pki", "private keys"),
    ("/etc/krb5.keytab", "private keys"),
    ("/etc/wireguard/", "private keys"),
    ("/etc/openvpn/", "private keys"),
    (
        "/etc/NetworkManager/system-connections",
        "network passwords",
    ),
    ("/etc/wpa_supplicant/", "network passwords"),
    ("/etc/mysql/debian.cnf", "database passwords"),
    ("/var/lib/mysql/mysql/user", "password hashes"),
    ("/var/lib/sss/", "password hashes"),
    ("/var/lib/jenkins/secrets", "secrets"),
    ("/var/backups/shadow", "password hashes"),
    ("/etc/docker/key.json", "private keys"),
    ("/dev/input/", "what is typed"),
    ("/proc/kcore", "memory"),
    ("/dev/mem", "memory"),
    ("/etc/ppp/chap-secrets", "passwords"),
    ("/etc/ipsec.secrets", "passwords"),
    ("/etc/boto.cfg", "cloud credentials"),
    ("/etc/environment.secret", "secrets"),
    ("/etc/exim4/passwd.client", "passwords"),
    ("/etc/postfix/sasl_passwd", "passwords"),
];

/// What a path holds, if it is a secret.
pub(crate) fn holds(full: &str, context: &JudgementContext) -> Option<&'static str> {
    if full.ends_with(".pub")
        || full.ends_with("/README")
        || full.ends_with("/known_hosts")
        || full.ends_with("/.ssh/config")
        || full.ends_with("/authorized_keys")
    {
        return None;
    }
    let home = context.home.trim_end_matches('/');
    let below = [home, "/root"]
        .iter()
        .find_map(|base| full.strip_prefix(base)?.strip_prefix('/'))
        .or_else(|| {
            let rest = full
                .strip_prefix("/home/")
                .or_else(|| full.strip_prefix("/Users/"))?;
            rest.split_once('/').map(|(_, rest)| rest)
        });
    let pattern = full.contains(['*', '?', '[']);
    let listed = |given: &str, path: &str| {
        given.starts_with(path)
            || path.strip_suffix('/') == Some(given)
            || (pattern && globbed(given, path))
    };
    if let Some(rest) = below
        && let Some((_, what)) = HOME.iter().find(|(path, _)| listed(rest, path))
    {
        return Some(what);
    }
    // What a search by name finds may lie in anybody's home.
    if let Some((_, name)) = full.rsplit_once(BELOW)
        && let Some(name) = name.strip_prefix('/')
        && let Some((_, what)) = HOME.iter().find(|(path, _)| listed(name, path))
    {
        return Some(what);
    }
    if let Some((_, what)) = SYSTEM.iter().find(|(path, _)| listed(full, path)) {
        return Some(what);
    }
    let name = base_name(full);
    let about = [
        ".md", ".rs", ".py", ".js", ".ts", ".go", ".c", ".h", ".html", ".rst", ".adoc",
    ];
    let named = ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"]
        .iter()
        .any(|key| name.starts_with(key))
        && !about.iter().any(|end| name.ends_with(end));
    if full.contains("/.ssh/") || full.ends_with("/.ssh") || named {
        return Some("private keys");
    }
    if full.starts_with("/proc/") && (full.ends_with("/environ") || full.ends_with("/mem")) {
        return Some("another process's secrets");
    }
    if is_env_file(name) {
        return Some("the project's secrets");
    }
    let key = name.ends_with(".pem")
        || name.ends_with(".p12")
        || name.ends_with(".pfx")
        || name.ends_with(".keystore")
        || name.ends_with(".jks")
        || name.ends_with(".kdbx")
        || name.ends_with(".ppk")
        || name.ends_with(".keytab")
        || name.ends_with("_rsa")
        || name.ends_with(".asc") && name.contains("secret");
    if key
        && !name.contains("cert")
        && !name.contains("public")
        && !name.contains("ca.")
        && !name.contains("chain")
        && !name.contains("bundle")
    {
        return Some("private keys");
    }
    let inside = full.starts_with(&format!("{}/", context.workspace.trim_end_matches('/')));
    let anybodys = [
        ".pgpass",
        ".netrc",
        ".my.cnf",
        ".mylogin.cnf",
        ".git-credentials",
        ".vault-token",
        ".s3cfg",
        ".pypirc",
    ];
    if !inside && anybodys.contains(&name) {
        return Some("passwords");
    }
    if matches!(
        name,
        "credentials"
            | "credentials.json"
            | "secrets.yml"
            | "secrets.yaml"
            | "secrets.json"
            | "service-account.json"
            | "master.key"
            | "kubeconfig"
            | "wp-config.php"
            | ".htpasswd"
            | "wallet.dat"
            | "terraform.tfstate"
            | "logins.json"
            | "key4.db"
            | "cookies.sqlite"
            | "Login Data"
            | "Cookies"
            | "Web Data"
            | "shadow"
            | "ntds.dit"
            | "SAM"
            | "private.key"
            | "privkey.pem"
            | "server.key"
            | "client_secret.json"
            | ".vault_pass"
            | "vault_pass"
            | "vault_pass.txt"
            // This program's own, wherever its home is.
            | "audit.key"
            | "dashboard.key"
            | "egress-ca.key"
    ) {
        return Some("credentials");
    }
    None
}

/// `/etc/sh*dow` is `/etc/shadow`.
fn globbed(given: &str, path: &str) -> bool {
    given.trim_matches('*').len() > 2
        && crate::reduce::glob::matches(given, path.trim_end_matches('/'))
}

fn is_env_file(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(".env") else {
        return false;
    };
    let sample = [
        "example", "sample", "template", "dist", "schema", "defaults", "test", "d.ts", "md",
    ];
    (rest.is_empty() || rest.starts_with('.')) && !sample.iter().any(|word| rest.contains(word))
}
