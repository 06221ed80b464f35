//! Which files a command reads, and which it only names.

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

/// Programs whose operands are files, whatever they look like.
pub(super) fn reads_words(program: &str) -> bool {
    matches!(
        program,
        "cat"
            | "plutil"
            | "defaults"
            | "PlistBuddy"
            | "less"
            | "more"
            | "head"
            | "tail"
            | "cp"
            | "tar"
            | "zip"
            | "base64"
            | "strings"
            | "xxd"
            | "od"
            | "hexdump"
            | "bat"
            | "tac"
            | "nl"
            | "sort"
            | "cut"
            | "grep"
            | "awk"
            | "sed"
            | "scp"
            | "rsync"
            | "curl"
            | "dd"
            | "jq"
            | "yq"
            | "rev"
            | "diff"
            | "gzip"
            | "7z"
            | "paste"
    )
}

/// The value of `--load-privkey` or `--client-cert` is a key for a tool that needs one.
pub(super) fn used_as_meant(command: &ReducedCommand, text: &ExpandedText) -> bool {
    command.args().windows(2).any(|pair| {
        std::ptr::eq(&raw const pair[1], text)
            && pair[0].s.starts_with('-')
            && (names_a_key(&pair[0].s)
                || ["key", "cert", "identity", "out"]
                    .iter()
                    .any(|word| pair[0].s.contains(word))
                    && !matches!(
                        command.program(),
                        "cat" | "curl" | "wget" | "scp" | "sort" | "cut"
                    ))
    })
}

/// Options by which every client is told the key it shows itself with.
pub(super) fn names_a_key(option: &str) -> bool {
    matches!(
        option,
        "--cert"
            | "--key"
            | "--cert-key"
            | "--cacert"
            | "--client-cert"
            | "--client-key"
            | "--certificate"
            | "--private-key"
            | "--ca-certificate"
            | "--tls-cert"
            | "--tls-key"
            | "--ssl-cert"
            | "--ssl-key"
            | "--tlscert"
            | "--tlskey"
    )
}

/// Secrets handed to programs that have a right to most of what they are given.
///
/// `.env` is what such programs are for, and a key is what ssh is for; `/etc/shadow` is neither.
pub(super) fn loaded(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<String> {
    let foreign = |path: &str| {
        crate::paths::secret(path, &judge.cwd, judge.context)
            .is_some_and(|what| what != "the project's secrets")
    };
    let words = || command.operands().map(|text| text.s.clone());
    let valued = |flags: &[&str]| -> Vec<String> {
        flags
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .collect()
    };
    let candidates: Vec<String> = match command.program() {
        "source" | "." | "python" | "python3" | "node" | "ansible-playbook" | "make" | "read" => {
            words().collect()
        }
        "git"
            if matches!(
                command.operand(0),
                "add" | "diff" | "hash-object" | "show" | "grep" | "blame"
            ) =>
        {
            words().collect()
        }
        "ssh" | "autossh" | "mosh" => valued(&["-F", "-E"]),
        "file" => valued(&["-f", "-m", "--files-from", "--magic-file"]),
        "wc" | "du" => valued(&["--files0-from"]),
        "ssh-keygen" if !command.short('y') && !command.short('p') && !command.short('l') => {
            Vec::new()
        }
        "docker" | "podman" | "docker-compose" => {
            let mut files = valued(&["-f", "--file", "--env-file"]);
            if command.operand(0) == "cp" {
                files.extend(words().skip(1));
            }
            files
        }
        "kubectl" | "oc" if command.operand(0) == "cp" => words().skip(1).collect(),
        "kubectl" | "helm" => valued(&["-f", "--filename", "--from-file", "--from-env-file"]),
        _ => mentioned(command),
    };
    candidates
        .into_iter()
        .filter(|path| foreign(path))
        .collect()
}

/// Paths inside of code: a query, a document, a script of a language nobody reads here.
fn mentioned(command: &ReducedCommand) -> Vec<String> {
    const SPEAKS: &[&str] = &[
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "octave",
        "octave-cli",
        "gnuplot",
        "latex",
        "tex",
        "pdflatex",
        "xelatex",
        "lualatex",
        "latexmk",
        "m4",
        "emacs",
        "gdb",
        "lldb",
        "troff",
        "groff",
        "nroff",
        "asciidoctor",
        "jrunscript",
        "julia",
        "java",
        "jshell",
        "ghc",
        "runghc",
        "dosbox",
        "R",
        "Rscript",
        "gimp",
        "maxima",
        "bc",
        "tclsh",
        "wish",
        "erl",
        "elixir",
        "iex",
        "sbcl",
        "cpio",
        "xargs",
        "ed",
        "vim",
        "ex",
        "duckdb",
        "clickhouse-local",
        "mongosh",
        "scala",
        "kotlin",
        "nawk",
        "slsh",
        "rlwrap",
        "php",
        "lua",
        "perl",
        "ruby",
        "multitime",
        "restic",
    ];
    if !SPEAKS.contains(&command.program()) {
        return Vec::new();
    }
    let typed = command.input.known.as_deref().unwrap_or_default();
    command
        .args()
        .iter()
        .map(|arg| arg.s.as_str())
        .chain([typed])
        .flat_map(|text| text.split(|c: char| c.is_whitespace() || "'\"`(){}[]<>,;=".contains(c)))
        .filter(|word| word.starts_with(['/', '~']) && word.len() < 256)
        .take(64)
        .map(str::to_owned)
        .collect()
}

/// What `--exclude` and zip's `-x` name stays where it is. To other tools `-x` means something else.
pub(super) fn left_out(command: &ReducedCommand, text: &ExpandedText) -> bool {
    let args = command.args();
    let excludes = matches!(command.program(), "zip" | "diff" | "7z" | "unzip");
    args.windows(2).any(|pair| {
        std::ptr::eq(&raw const pair[1], text)
            && (pair[0].s.starts_with("--exclude") || excludes && pair[0].s == "-x")
    })
}
