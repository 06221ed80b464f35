//! What prints a stored secret.

use crate::effective::ReducedCommand;
use crate::programs::acts;

/// Whether a variable or a pattern is about keys and passwords by its name.
pub(crate) fn names_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "secret",
        "token",
        "passw",
        "api_key",
        "apikey",
        "private",
        "credential",
    ];
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
        || name.ends_with("_key")
        || matches!(name.as_str(), "key" | "pass" | "pwd")
}

/// Programs that print what they guard.
pub(crate) fn prints(command: &ReducedCommand) -> bool {
    let words = acts::subcommands(command);
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    match command.program() {
        "pass" | "gopass" => {
            command.short('c')
                || matches!(first, "show")
                || (!words.is_empty()
                    && !matches!(
                        first,
                        "ls" | "list"
                            | "sync"
                            | "audit"
                            | "config"
                            | "insert"
                            | "generate"
                            | "git"
                            | "init"
                            | "find"
                            | "search"
                            | "help"
                            | "version"
                            | "edit"
                            | "rm"
                            | "mv"
                            | "cp"
                            | "grep"
                    ))
        }
        "secret-tool" => matches!(first, "lookup" | "search"),
        // A certificate is for everybody to see.
        "security" => {
            first.starts_with("find-") && !matches!(first, "find-certificate" | "find-identity")
                || matches!(first, "dump-keychain" | "export")
        }
        "gpg" | "gpg2" => command
            .args()
            .iter()
            .any(|arg| arg.s.starts_with("--export-secret") || arg.s.contains(".password-store/")),
        "lpass" => first == "show",
        "chamber" => matches!(first, "read" | "export"),
        "terraform" | "tofu" => {
            first == "state" && second == "pull" || first == "output" && names_secret(second)
        }
        "openssl" => {
            let open = command.has_arg("-nodes") || command.has_arg("-noenc");
            first == "pkcs12" && open && !command.has_arg("-nokeys")
        }
        "op" => matches!(first, "read") || (first == "item" && second == "get"),
        "bw" => matches!(first, "get" | "export" | "list"),
        "chezmoi" => first == "decrypt",
        "systemd-creds" => matches!(first, "cat" | "decrypt"),
        "nmcli" => command.short('s') || command.long("--show-secrets"),
        "vault" => (first == "kv" && second == "get") || first == "read",
        "aws" => {
            matches!(
                (first, second),
                ("secretsmanager", "get-secret-value")
                    | (
                        "ssm",
                        "get-parameter" | "get-parameters" | "get-parameters-by-path"
                    )
                    | ("configure", "export-credentials" | "get")
                    | ("sts", "get-session-token" | "get-federation-token")
                    | (
                        "ecr" | "ecr-public",
                        "get-login-password" | "get-authorization-token"
                    )
                    | ("codeartifact", "get-authorization-token")
                    | (
                        "rds" | "redshift",
                        "generate-db-auth-token" | "get-cluster-credentials"
                    )
                    | (
                        "lightsail",
                        "get-instance-access-details" | "download-default-key-pair"
                    )
                    | ("ec2", "get-password-data")
            ) && !command.has_arg("help")
                && !command.unseen
        }
        "gcloud" => {
            (first == "auth"
                && matches!(
                    second,
                    "print-access-token" | "print-identity-token" | "application-default"
                ))
                || (first == "secrets" && second == "versions")
        }
        "az" => {
            let third = words.get(2).copied().unwrap_or_default();
            (first == "account" && second == "get-access-token")
                || (first == "keyvault" && second == "secret")
                || second == "credential" && third == "show"
                || matches!(third, "list" | "list-keys")
                    && (second.contains("key") || words.contains(&"keys"))
                || words.contains(&"keys") && words.last() == Some(&"list")
                || words
                    .iter()
                    .any(|word| matches!(*word, "list-keys" | "show-connection-string"))
        }
        "wg" => {
            first == "showconf"
                || words
                    .iter()
                    .any(|word| word.contains("private-key") || word.contains("preshared-key"))
        }
        "kwallet-query" | "kwalletcli" => command.short('r') || command.program() == "kwalletcli",
        "git-credential-store" | "git-credential-cache" | "git-credential-libsecret" => {
            first == "get"
        }
        "dscl" => command.args().iter().any(|arg| {
            arg.s.contains("ShadowHashData") || arg.s.contains("AuthenticationAuthority")
        }),
        "kubectl" | "oc" => {
            let whose = first == "whoami";
            (whose && (command.short('t') || command.long("--show-token")))
                || (first == "create" && second == "token")
                || (first == "get"
                    && second.starts_with("secret")
                    && (command.short('o') || command.long("--output")))
                || (first == "config" && second == "view" && command.long("--raw"))
        }
        "gh" => {
            first == "auth"
                && (second == "token" || command.has_arg("--show-token") || command.short('t'))
        }
        "npm" => first == "config" && second == "get" && words.iter().any(|w| w.contains("_auth")),
        "heroku" => first == "config" || matches!(first, "auth:token" | "authorizations:create"),
        "getent" => first == "shadow",
        "gcore" | "procdump" => true,
        "printenv" => names_secret(first),
        "grep" | "egrep" | "fgrep" | "rg" => {
            command.input.taint.has(crate::text::TaintSet::ENVIRONMENT) && names_secret(first)
        }
        "docker" | "podman" if first == "inspect" => {
            command.args().iter().any(|arg| arg.s.contains(".Env"))
        }
        "ps" => command.args().first().is_some_and(|text| {
            text.s.contains('e') && text.s.chars().all(|c| "auxefwlsvjh".contains(c))
        }),
        "rclone" => first == "config" && matches!(second, "show" | "dump"),
        "lsassy" | "mimikatz" | "mimipenguin" | "laZagne" | "lazagne" => true,
        "unshadow" | "john" | "hashcat" => true,
        "doppler" => first == "secrets",
        "sops" => command.short('d') || command.long("--decrypt"),
        "ansible-vault" => first == "view" || first == "decrypt",
        "docker" => first == "secret" && second == "inspect",
        "git" => {
            first == "credential" && second == "fill"
                || first.starts_with("credential-") && second == "get"
        }
        "gdb" | "lldb" => {
            (command.short('p') || command.long("--pid") || command.has_arg("attach"))
                && command.args().iter().any(|arg| {
                    [
                        "dump memory",
                        "dump binary memory",
                        "generate-core-file",
                        "gcore",
                        "process save-core",
                    ]
                    .iter()
                    .any(|order| arg.s.contains(order))
                })
        }
        "doctl" => first == "auth" && second == "token",
        "fly" | "flyctl" => first == "auth" && second == "token" || first == "tokens",
        "glab" => first == "auth" && (command.short('t') || command.long("--show-token")),
        "pypykatz" | "secretsdump.py" | "secretsdump" | "gsecdump" | "nanodump" => true,
        "keyctl" => matches!(first, "print" | "pipe" | "read"),
        "keyring" => first == "get",
        _ => false,
    }
}
