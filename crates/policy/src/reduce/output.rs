//! What a command prints, if that can be told, and where it came from.

mod printed;

use super::{ScriptWalker, decode, listing, shape};
use crate::effective::ReducedCommand;
use crate::paths::{self, PathLoss};
use crate::text::{ByteFlow, ExpandedText, TaintSet};
use printed::{cut, echo, prefixed, printf};

/// Programs that print what they fetch.
const FETCHERS: &[&str] = &[
    "curl",
    "wget",
    "nscurl",
    "fetch",
    "http",
    "https",
    "xh",
    "lynx",
    "w3m",
    "links",
    "elinks",
    "aria2c",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "tftp",
    "dig",
    "nslookup",
    "host",
    "drill",
    "gsutil",
    "rclone",
    "ssh",
    "axel",
    "curlie",
    "httpie",
    "GET",
    "lwp-request",
    "smbclient",
    "scp",
    "ipfs",
];

/// Programs that print some of what they read, unchanged enough to matter.
const READERS: &[&str] = &[
    "cat", "tac", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "ag", "awk",
    "gawk", "mawk", "sed", "cut", "sort", "uniq", "strings", "nl", "od", "xxd", "hexdump",
    "base64", "base32", "gzip", "bzip2", "xz", "zstd", "zcat", "bzcat", "xzcat", "tar", "zip",
    "openssl", "gpg", "jq", "yq", "dd", "bat", "batcat", "tee", "pv", "rev", "tr", "fold", "paste",
    "column", "gunzip", "cpio", "7z", "perl", "python", "python3", "ruby", "iconv", "expand",
    "fmt", "basenc", "uuencode", "hd", "cp", "split", "diff", "comm", "join",
];

impl ScriptWalker<'_> {
    pub(super) fn output(&mut self, command: &ReducedCommand) -> ByteFlow {
        if let Some(text) = self.simulate(command) {
            let mut taint = command.input.taint;
            for word in command.args() {
                taint = taint | word.taint;
            }
            // Plain `tr` and `rev` are everyday filters; the result is known and judged.
            if decodes(command) && !matches!(command.program(), "tr" | "rev") {
                taint = taint | TaintSet::DECODED;
            }
            taint = shape::narrowed(command, taint) | shape::lists_everything(command);
            return ByteFlow {
                known: Some(text),
                taint,
                present: true,
                ..ByteFlow::default()
            };
        }
        let taint =
            shape::narrowed(command, self.output_taint(command)) | shape::lists_everything(command);
        ByteFlow::shaped(self.output_shape(command), taint)
    }

    fn output_taint(&self, command: &ReducedCommand) -> TaintSet {
        let name = command.program();
        let mut taint = command.input.taint;
        for word in command.args() {
            taint = taint | word.taint;
        }
        if FETCHERS.contains(&name) || name == "openssl" && command.operand(0) == "s_client" {
            taint = taint | TaintSet::NETWORK;
        }
        if prints_environment(command)
            || name == "printenv" && crate::programs::secrets::names_secret(command.operand(0))
        {
            taint = taint | TaintSet::ENVIRONMENT;
        }
        if READERS.contains(&name) {
            for operand in command.operands().chain(&command.reads) {
                taint = taint | self.content_of(operand, &ByteFlow::default()).taint;
            }
        }
        if decodes(command) {
            taint = taint | TaintSet::DECODED;
        }
        if self.gathers(command) {
            taint = taint | TaintSet::SECRET;
        }
        let packs = name == "git" && matches!(command.operand(0), "archive" | "bundle");
        if packs || matches!(name, "tar" | "gtar" | "bsdtar" | "zip" | "7z" | "cpio") {
            taint = taint | TaintSet::ARCHIVE;
        }
        let pastes = matches!(name, "pbpaste" | "wl-paste")
            || matches!(name, "xclip" | "xsel") && (command.short('o') || command.short('b'));
        if pastes {
            taint = taint | TaintSet::CLIPBOARD;
        }
        // Whoever writes a text down and changes it before it runs has something to hide.
        if command.input.known.is_some()
            && matches!(
                name,
                "sed" | "awk" | "gawk" | "perl" | "cut" | "python3" | "head" | "tail"
            )
        {
            taint = taint | TaintSet::DECODED;
        }
        if cuts_out_of_a_document(command) {
            taint = taint | TaintSet::DECODED;
        }
        if let Some(code) = super::codes::given_code(command) {
            if code.contains("http://") || code.contains("https://") {
                taint = taint | TaintSet::NETWORK;
            }
            if [
                "b64decode",
                "base64_decode",
                "decode_base64",
                "fromhex",
                "unhexlify",
                "atob(",
                "unpack(",
            ]
            .iter()
            .any(|call| code.contains(call))
            {
                taint = taint | TaintSet::DECODED;
            }
        }
        if prints_shell(command) {
            taint = taint | TaintSet::SHELL_ENV;
        }
        if prints_secrets(command) {
            taint = taint | TaintSet::SECRET;
        }
        taint
    }

    /// A whole database, or an archive of what lies outside the workspace.
    fn gathers(&self, command: &ReducedCommand) -> bool {
        match command.program() {
            "pg_dump" | "pg_dumpall" | "mysqldump" | "mariadb-dump" | "mongodump" => true,
            "sqlite3" => command.args().iter().any(|arg| arg.s.starts_with(".dump")),
            "tar" | "gtar" | "bsdtar" | "zip" | "7z" | "cpio" => {
                let cwd = self.workdir();
                command
                    .operands()
                    .filter(|text| text.s.contains('/'))
                    .any(|text| {
                        matches!(
                            paths::place(&text.s, cwd, self.context),
                            PathLoss::Root
                                | PathLoss::System
                                | PathLoss::Home
                                | PathLoss::InsideSystem
                                | PathLoss::InsideHome
                        )
                    })
            }
            _ => false,
        }
    }

    /// Runs the few filters that disguises are made of.
    fn simulate(&mut self, command: &ReducedCommand) -> Option<String> {
        let args = command.args();
        if args.iter().any(ExpandedText::is_unbounded) && command.program() != "ls" {
            return None;
        }
        let strings: Vec<&str> = args.iter().map(|arg| arg.s.as_str()).collect();
        let input = || self.input_of(command);
        if let Some(kept) = listing::mostly_kept(command) {
            return Some(kept);
        }
        match command.program() {
            "echo" => Some(echo(&strings)),
            "printf" => printf(&strings),
            "cat" | "tac" | "tee" | "sponge" | "pv" | "head" | "tail"
                if self.plain_copy(command) =>
            {
                input()
            }
            "base64" | "gbase64" | "base32" | "basenc" | "openssl" | "uudecode"
                if decodes(command) =>
            {
                let text = input()?;
                if command.program() == "base32" || command.has_arg("--base32") {
                    decode::base32(&text)
                } else if command.program() == "openssl"
                    && !command.has_arg("base64")
                    && !command.has_arg("-base64")
                    && !command.has_arg("-a")
                {
                    None
                } else {
                    decode::base64(&text)
                }
            }
            "xxd" if command.short('r') => decode::hex(&input()?),
            "rev" => Some(decode::rev(&input()?)),
            "tr" => {
                let words: Vec<&ExpandedText> = command.operands().collect();
                let from = &words.first()?.s;
                Some(decode::tr(
                    &input()?,
                    from,
                    words.get(1).map(|w| w.s.as_str()),
                    command.short('d'),
                ))
            }
            "sed" if !command.short('n') && !command.short('i') => {
                let script = command
                    .value_of("-e")
                    .map_or_else(|| command.operand(0), |t| t.s.as_str());
                prefixed(&input()?, script).or_else(|| decode::sed(&input()?, script))
            }
            "cut" => cut(&input()?, command),
            "which" | "type" | "command" => {
                let name = command.operands().last()?;
                Some(format!("/usr/bin/{}\n", name.s))
            }
            "pwd" => Some(format!("{}\n", self.workdir())),
            "basename" => Some(format!(
                "{}\n",
                crate::effective::base_name(command.operand(0))
            )),
            "dirname" => {
                let path = command.operand(0);
                Some(
                    path.rsplit_once('/')
                        .map_or(".", |(folder, _)| folder)
                        .to_owned(),
                )
            }
            "mktemp" => Some(temporary(command)),
            "realpath" | "readlink" => {
                let path = command.operands().last()?;
                path.is_known()
                    .then(|| format!("{}\n", paths::absolute(&path.s, self.workdir())))
            }
            "find" => listing::found(command),
            "ls" | "exa" | "eza" => Some(listing::listed(command)),
            "grep" | "egrep" | "fgrep" | "rg" | "ag" => listing::matching(command),
            "fd" | "fdfind" | "du" | "tree" | "locate" | "plocate" | "mlocate" | "stat"
            | "compgen" | "rpm" | "dpkg" | "pacman" => listing::walked(command),
            "python" | "python3" if decodes(command) => {
                decode::base64(&command.input.known.clone()?)
            }
            "python" | "python3" | "perl" | "ruby" | "node" | "php" | "awk" | "gawk" => {
                super::codes::printed(command)
            }
            _ => None,
        }
    }

    /// `head -c5` and `tail -n1` change the text; only what passes it on whole counts.
    fn plain_copy(&self, command: &ReducedCommand) -> bool {
        !matches!(command.program(), "head" | "tail")
    }

    fn input_of(&self, command: &ReducedCommand) -> Option<String> {
        let mut files: Vec<&ExpandedText> = command.operands().collect();
        match command.program() {
            "tr" | "sed" | "cut" => files.clear(),
            "openssl" => files.clear(),
            "tee" | "sponge" => files.clear(),
            _ => {}
        }
        if files.is_empty() {
            return command.input.known.clone();
        }
        let mut all = String::new();
        for file in files {
            all.push_str(&self.content_of(file, &command.input).known?);
        }
        Some(all)
    }
}

/// What `mktemp` makes, which is new and its caller's.
fn temporary(command: &ReducedCommand) -> String {
    match command.operands().last() {
        Some(pattern) if pattern.s.contains('/') => format!("{}\n", pattern.s),
        Some(pattern) => format!("/tmp/{}\n", pattern.s),
        None => "/tmp/tmp.hermetic\n".to_owned(),
    }
}

/// Variables, or lines that people typed.
fn prints_environment(command: &ReducedCommand) -> bool {
    match command.program() {
        "env" | "printenv" | "history" | "set" => command.args().is_empty(),
        "declare" | "typeset" | "export" => command.short('p') || command.short('x'),
        "compgen" => command.short('v') || command.short('e'),
        "fc" => command.short('l'),
        "docker" | "docker-compose" | "podman" => {
            command
                .operands()
                .last()
                .is_some_and(|last| last.s == "config")
                || command.operand(0) == "inspect"
        }
        _ => false,
    }
}

pub(super) fn decodes(command: &ReducedCommand) -> bool {
    match command.program() {
        "base64" | "gbase64" | "base32" | "basenc" => {
            command.short('d') || command.short('D') || command.long("--decode")
        }
        "python" | "python3" => {
            let module = command.value_of("-m");
            module.is_some_and(|module| module.s == "base64") && command.has_arg("-d")
        }
        "xxd" => command.short('r'),
        "openssl" => command.short('d'),
        "gpg" | "gpg2" => command.short('d') || command.long("--decrypt"),
        "tar" | "gtar" | "bsdtar" => {
            command.short('O') || command.long("--to-stdout") || command.operand(0).contains('O')
        }
        "gunzip" | "zcat" | "bzcat" | "xzcat" | "bunzip2" | "unxz" | "uudecode" | "zstdcat"
        | "lz4cat" => true,
        "gzip" | "bzip2" | "xz" | "zstd" | "lzma" => {
            command.short('d') || command.long("--decompress")
        }
        "rev" | "tr" | "rot13" | "caesar" => true,
        _ => false,
    }
}

/// Tools that print shell text for `eval`.
fn prints_shell(command: &ReducedCommand) -> bool {
    const TOOLS: &[&str] = &[
        "ssh-agent",
        "keychain",
        "direnv",
        "brew",
        "pyenv",
        "rbenv",
        "nodenv",
        "goenv",
        "starship",
        "zoxide",
        "fnm",
        "nvm",
        "opam",
        "dircolors",
        "lesspipe",
        "lesspipe.sh",
        "minikube",
        "docker-machine",
        "podman",
        "conda",
        "mamba",
        "micromamba",
        "mise",
        "rtx",
        "asdf",
        "thefuck",
        "luarocks",
        "register-python-argcomplete",
        "gpg-agent",
        "gnome-keyring-daemon",
        "resize",
        "perl",
        "kubectl",
        "helm",
        "gh",
        "atuin",
        "mcfly",
        "fzf",
        "pip",
        "poetry",
        "pdm",
        "guix",
        "crc",
        "hatch",
        "jenv",
        "plenv",
        "vfox",
        "locale",
        "tput",
        "stack",
        "opam",
        "aws-vault",
        "op",
        "getopt",
        "dbus-launch",
        "navi",
    ];
    TOOLS.contains(&command.program())
}

fn prints_secrets(command: &ReducedCommand) -> bool {
    paths::prints_secret(command)
}

/// A script is not kept in pieces of something else: `sed -n 's/^# //p' notes.txt | sh`.
fn cuts_out_of_a_document(command: &ReducedCommand) -> bool {
    const SCRIPTS: &[&str] = &[".sh", ".bash", ".zsh", ".env", ".ksh", ".conf"];
    let name = command.program();
    if name == "dd" {
        return command.args().iter().any(|arg| arg.s.starts_with("skip="));
    }
    let cuts = matches!(
        name,
        "sed" | "gsed" | "grep" | "egrep" | "awk" | "gawk" | "strings" | "cut"
    );
    let skipped = usize::from(name != "strings" && name != "cut");
    let document = |text: &ExpandedText| {
        let file = crate::effective::base_name(&text.s);
        file.contains('.')
            && !file.starts_with('.')
            && !SCRIPTS.iter().any(|end| file.ends_with(end))
    };
    cuts && command.operands().skip(skipped).any(document)
}
