//! Programs whose words are texts, patterns and names: what they mention, they do not do.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Whether the words of a program say nothing about what it does.
pub(crate) fn takes_texts(program: &str) -> bool {
    static SET: LazyLock<HashSet<&str>> = LazyLock::new(|| TEXTS.iter().copied().collect());
    SET.contains(program)
}

#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "", ":", "[", "[[", "test", "true", "false", "echo", "printf", "say", "logger", "notify-send", "wall", "write",
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ugrep", "sed", "gsed", "awk", "gawk", "mawk", "tr", "cut",
    "sort", "uniq", "wc", "head", "tail", "cat", "tac", "bat", "less", "more", "diff", "cmp", "comm", "jq", "yq",
    "xq", "fx", "gron", "column", "fold", "fmt", "nl", "paste", "rev", "tee", "sponge", "look", "expr", "bc", "dc",
    "ls", "eza", "exa", "lsd", "tree", "stat", "file", "du", "df", "ncdu", "dust", "duf", "cd", "pushd", "popd",
    "pwd", "basename", "dirname", "realpath", "readlink", "mkdir", "touch", "which", "whereis", "whatis", "apropos",
    "man", "info", "help", "tldr", "cheat", "type", "hash", "command", "export", "declare", "local", "typeset",
    "readonly", "alias", "unalias", "unset", "set", "shopt", "read", "trap", "wait", "let", "history", "fc", "bind",
    "complete", "compgen", "git", "gh", "glab", "hg", "svn", "jj", "tea", "hub", "curl", "wget", "http", "https",
    "xh", "mail", "mailx", "mutt", "last", "lastb", "who", "w", "journalctl", "dmesg", "ps", "pgrep", "pidof",
    "systemctl", "figlet", "cowsay", "toilet", "banner", "zenity", "kdialog", "whiptail", "dialog", "osascript",
    "fzf", "pbcopy", "xclip", "xsel", "wl-copy", "code", "subl", "open", "xdg-open", "jira", "trans", "espeak",
    "aspell", "spell", "vale", "commitizen", "cz", "conventional-changelog", "llm", "ollama", "claude", "aider",
    "pass", "dict", "locate", "mdfind", "apt-cache", "rpmquery", "equery", "pkgutil", "history", "strings", "time",
    "make", "gmake", "just", "npm", "pnpm", "yarn", "pytest", "cargo", "hermetic", "hermes", "tmux", "screen",
];
