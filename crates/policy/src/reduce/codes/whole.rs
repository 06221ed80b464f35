//! What code says taken as a whole, in whatever language.
//!
//! A language that nobody reads here still names the folder it deletes, the command it starts and the
//! service it speaks to. Code that deletes and names a whole system, a text in it that is a command of
//! the floor, and a loop without end that starts things are found by that alone.

use super::super::ScriptWalker;
use super::super::literals::CodeToken;
use super::names;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::text::{ByteFlow, ExpandedText};

/// How many texts are tried as commands.
const MOST: usize = 6;

/// Programs that a text or a call of that name is tried as.
const WORST: &[&str] = &[
    "rm",
    "dd",
    "mkfs",
    "shred",
    "wipefs",
    "poweroff",
    "reboot",
    "shutdown",
    "halt",
    "killall",
    "pkill",
    "blkdiscard",
    "sgdisk",
    "find",
    "chmod",
    "chown",
    "systemctl",
    "sudo",
];

impl ScriptWalker<'_> {
    pub(in super::super) fn whole_code(
        &mut self,
        code: &str,
        tokens: &[CodeToken],
        language: &'static str,
    ) {
        if self.names_a_whole_system(tokens, deletion(tokens)) {
            self.find(HarmFinding::floor(
                HarmCategory::Destruction,
                format!("deletes a whole system or home, in {language}"),
            ));
        }
        let removes = tokens.iter().enumerate().any(|(at, token)| {
            let starts = |text: &str| text.starts_with("rm -r") || text.starts_with("rm -fr");
            let word = |text: &str| text == "rm" && matches!(tokens.get(at + 2), Some(CodeToken::Text(next)) if next.starts_with("-r"));
            matches!(token, CodeToken::Text(text) if starts(text) || word(text))
                && !names(&tokens[at.saturating_sub(4)..at], 4).any(is_printing)
        });
        let lists = names(tokens, 512).any(|name| super::vocabulary::lists(name) || name == "Dir");
        if removes && lists && self.names_a_whole_system(tokens, Deletion::Tree) {
            self.find(HarmFinding::floor(
                HarmCategory::Destruction,
                format!("deletes a whole system or home, in {language}"),
            ));
        }
        if starts_without_end(code, tokens) {
            self.find(HarmFinding::floor(
                HarmCategory::ForkBomb,
                "starts things without end (fork bomb)",
            ));
        }
        // The numbers by which the kernel knows its reboot.
        if ["0xfee1dead", "4276215469"]
            .iter()
            .any(|number| code.contains(number))
        {
            self.find(HarmFinding::floor(
                HarmCategory::Power,
                "stops or restarts the machine",
            ));
        }
        if let Some(verb) = takes_away_at_a_service(tokens) {
            let what = format!("takes something away at a service ({verb})");
            self.found_in_code(HarmCategory::Cloud, &what, language);
        }
        self.changes_modes(tokens, language);
        self.texts_as_commands(tokens, language);
    }

    fn names_a_whole_system(&self, tokens: &[CodeToken], deletion: Deletion) -> bool {
        // What may be an address or a mark between names.
        let ambiguous = |text: &str| {
            deletion == Deletion::Of && (text == "/" || text == "/home" || text == "/media")
        };
        deletion != Deletion::None
            && tokens.iter().any(|token| match token {
                CodeToken::Text(text) if ambiguous(text) => false,
                CodeToken::Text(text) => {
                    let path = self.with_home(text);
                    path.starts_with('/')
                        && path.len() < 64
                        && matches!(
                            paths::place(&path, self.workdir(), self.context),
                            PathLoss::Root | PathLoss::System | PathLoss::Home
                        )
                }
                _ => false,
            })
    }

    /// `File.chmod(0777, "/etc/passwd")`, whatever comes first.
    fn changes_modes(&mut self, tokens: &[CodeToken], language: &'static str) {
        let changes = names(tokens, 256).any(|name| {
            matches!(
                name,
                "chmod" | "chown" | "lchown" | "chmodSync" | "chownSync"
            )
        });
        if !changes {
            return;
        }
        let protected = tokens.iter().find_map(|token| match token {
            CodeToken::Text(text) if text.starts_with(['/', '~']) => {
                let path = self.with_home(text);
                let system = matches!(
                    paths::place(&path, self.workdir(), self.context),
                    PathLoss::InsideSystem | PathLoss::System | PathLoss::Root
                );
                system.then_some(path)
            }
            _ => None,
        });
        if let Some(path) = protected {
            let what = format!("changes the mode or owner of {path}");
            self.found_in_code(HarmCategory::SystemFile, &what, language);
        }
    }

    /// `"rm -rf /usr".!`, `(sh "rm" "-rf" "/etc")`, `sh.rm("-rf", "/etc")`.
    fn texts_as_commands(&mut self, tokens: &[CodeToken], language: &'static str) {
        let starts = |name: &str| {
            super::vocabulary::starts(name)
                || matches!(
                    name,
                    "sh" | "process"
                        | "Process"
                        | "Command"
                        | "command"
                        | "shell"
                        | "Shell"
                        | "exec_command"
                        | "execute"
                        | "Runtime"
                        | "ProcessBuilder"
                        | "run_command"
                        | "invoke"
                        | "child_process"
                        | "rm"
                        | "dd"
                )
        };
        if !names(tokens, 512).any(starts) {
            return;
        }
        let mut tried = 0;
        for (at, token) in tokens.iter().enumerate() {
            if tried >= MOST {
                return;
            }
            let prints = names(&tokens[at.saturating_sub(4)..at], 4).any(is_printing);
            if prints {
                continue;
            }
            match token {
                CodeToken::Text(text) => {
                    let first = text.split_whitespace().next().unwrap_or_default();
                    let first = crate::effective::base_name(first);
                    if !WORST.contains(&first) && !first.starts_with("mkfs.") {
                        continue;
                    }
                    tried += 1;
                    if text.trim().contains(' ') {
                        let text = text.clone();
                        self.worst_of(|walker| {
                            walker.run_text(&text, language, &ByteFlow::default());
                        });
                    } else {
                        self.try_words(first, &tokens[at + 1..]);
                    }
                }
                CodeToken::Name(name)
                    if matches!(name.as_str(), "rm" | "dd" | "shred" | "mkfs") =>
                {
                    tried += 1;
                    self.try_words(name, &tokens[at + 1..]);
                }
                _ => {}
            }
        }
    }

    fn try_words(&mut self, program: &str, after: &[CodeToken]) {
        let texts = after.iter().take(24).map_while(|token| match token {
            CodeToken::Text(text) => Some(Some(text.clone())),
            CodeToken::Name(name) if name == "args" => Some(None),
            CodeToken::Mark(',' | '[' | '(' | '{' | ':' | '=' | '>') => Some(None),
            _ => None,
        });
        let mut words = vec![ExpandedText::known(program)];
        words.extend(texts.flatten().map(ExpandedText::known));
        if words.len() < 2 {
            return;
        }
        self.worst_of(|walker| walker.amounts_to(words));
    }
}

fn is_printing(name: &str) -> bool {
    matches!(
        name,
        "print"
            | "println"
            | "printf"
            | "puts"
            | "echo"
            | "log"
            | "write"
            | "display"
            | "say"
            | "in"
            | "assert"
            | "info"
    )
}

/// How sure a name is to delete what the texts beside it name.
#[derive(Clone, Copy, PartialEq)]
enum Deletion {
    None,
    /// Of something: an entry of a table as well as a file.
    Of,
    /// Of a folder with everything in it.
    Tree,
}

fn deletion(tokens: &[CodeToken]) -> Deletion {
    const TREES: &[&str] = &[
        "rmtree",
        "rm_rf",
        "rm_r",
        "removeDir",
        "rimraf",
        "remove_tree",
        "rmSync",
        "RemoveAll",
        "remove_dir_all",
        "deleteSync",
        "removeSync",
        "removeItem",
        "deleteRecursively",
        "removeDirectoryRecursive",
        "nftw",
        "absent",
        "rmdirSync",
        "remove_entry_secure",
    ];
    const OF: &[&str] = &[
        "unlink",
        "rmdir",
        "delete",
        "rm",
        "remove",
        "unlinkSync",
        "removedirs",
    ];
    let tree = |name: &str| {
        let lower = name.to_lowercase();
        let told = lower.contains("delete") || lower.contains("remove");
        TREES.contains(&name)
            || told
                && ["dir", "tree", "recursive"]
                    .iter()
                    .any(|word| lower.contains(word))
    };
    let parts: Vec<&str> = names(tokens, 512).collect();
    // Lisp writes `delete-directory`, which reads as several tokens.
    let lisp = parts.windows(2).any(|two| {
        matches!(two[0], "delete" | "remove") && matches!(two[1], "directory" | "tree" | "dir")
    });
    let library = tokens.iter().any(|token| matches!(token, CodeToken::Text(text) if matches!(text.as_str(), "rimraf" | "del" | "trash")));
    let recursive = parts.contains(&"recursive") && parts.iter().any(|name| OF.contains(name));
    if lisp || library || recursive || parts.iter().any(|name| tree(name)) {
        Deletion::Tree
    } else if parts.iter().any(|name| OF.contains(name)) {
        Deletion::Of
    } else {
        Deletion::None
    }
}

/// A loop without end that starts processes and waits for none of them.
fn starts_without_end(code: &str, tokens: &[CodeToken]) -> bool {
    const ENDLESS: &[&str] = &[
        "while 1",
        "while True",
        "while true",
        "while(1)",
        "while(true)",
        "while (1)",
        "while (true)",
        "for(;;)",
        "for (;;)",
        "for{",
        "for {",
        "loop {",
        "loop{",
        "loop do",
        "while:",
        "count()",
        "setInterval",
    ];
    const STARTS: &[&str] = &[
        "Popen",
        "spawn",
        "fork",
        "pcntl_fork",
        "Process",
        "Start",
        "popen",
        "Thread",
        "posix_spawn",
        "CreateProcess",
        "vfork",
        "clone",
    ];
    const WAITS: &[&str] = &[
        "wait",
        "waitpid",
        "sleep",
        "communicate",
        "join",
        "poll",
        "read",
        "accept",
        "recv",
        "usleep",
        "Sleep",
        "input",
        "break",
        "spawnSync",
    ];
    let has = |list: &[&str]| names(tokens, 512).any(|name| list.contains(&name));
    let endless = ENDLESS.iter().any(|text| code.contains(text));
    let detached = tokens
        .iter()
        .any(|token| matches!(token, CodeToken::Text(text) if text.trim_end().ends_with('&')))
        && names(tokens, 512).any(|name| matches!(name, "system" | "exec" | "popen"));
    // A function that starts a copy of its own program and then itself.
    let recursive = has(&["__filename"]) && has(&["fork"]) && has(&["function"]);
    endless && (has(STARTS) || detached) && !has(WAITS) || recursive && !has(WAITS)
}

/// Libraries that speak to clouds, stores and clusters, and calls that take something away there.
fn takes_away_at_a_service(tokens: &[CodeToken]) -> Option<&str> {
    const LIBRARIES: &[&str] = &[
        "boto3",
        "botocore",
        "redis",
        "pymongo",
        "MongoClient",
        "docker",
        "kubernetes",
        "google",
        "azure",
        "psycopg2",
        "psycopg",
        "sqlalchemy",
        "elasticsearch",
        "Elasticsearch",
        "cassandra",
        "paramiko",
        "fabric",
        "github",
        "gitlab",
        "stripe",
        "digitalocean",
        "hcloud",
        "openstack",
        "libvirt",
        "etcd3",
        "consul",
        "hvac",
        "keyring",
        "aws",
        "S3Client",
        "ioredis",
        "mongoose",
        "octokit",
        "Octokit",
        "mysql",
        "pymysql",
        "kafka",
        "pika",
        "influxdb",
        "neo4j",
        "dropbox",
        "ldap3",
        "winrm",
        "proxmoxer",
        "firebase_admin",
    ];
    const BEGINNINGS: &[&str] = &[
        "delete",
        "terminate",
        "drop",
        "destroy",
        "purge",
        "flush",
        "revoke",
        "deregister",
        "remove",
        "stop_instances",
        "get_password",
        "kill",
    ];
    let in_text = |token: &CodeToken| matches!(token, CodeToken::Text(text) if LIBRARIES.contains(&text.as_str()) || text.starts_with("@aws-sdk/"));
    let speaks =
        names(tokens, 512).any(|name| LIBRARIES.contains(&name)) || tokens.iter().any(in_text);
    if !speaks {
        return None;
    }
    tokens.windows(2).find_map(|two| match two {
        [CodeToken::Mark('.'), CodeToken::Name(name)]
            if BEGINNINGS.iter().any(|start| name.starts_with(start)) =>
        {
            Some(name.as_str())
        }
        _ => None,
    })
}
