//! Files that the same text writes and then runs.

use super::ScriptWalker;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

const MOST_KNOWN_FILES: usize = 64;

/// Stands for whatever an archive from the network held.
const UNPACKED: &str = "/\u{0}unpacked";

impl ScriptWalker<'_> {
    /// Remembers what a command leaves in files.
    pub(super) fn remember(&mut self, command: &ReducedCommand, output: &ByteFlow) {
        for file in &command.writes {
            self.keep(&file.s, output.clone());
            self.look_at_later(&file.s, output);
        }
        let operands: Vec<&ExpandedText> = command.operands().collect();
        match command.program() {
            "tee" | "sponge" => {
                for file in operands {
                    self.keep(&file.s, command.input.clone());
                    self.look_at_later(&file.s, &command.input);
                }
            }
            "find" | "gfind" => {
                let kept = ["-fprint", "-fprint0"]
                    .iter()
                    .find_map(|flag| command.value_of(flag));
                if let Some(file) = kept {
                    let listed = super::listing::FileSearch::of(command.args()).listing();
                    self.keep(&file.s, ByteFlow::known(listed));
                }
            }
            "cp" | "mv" | "install" | "ln" => {
                if let [from, to] = operands.as_slice()
                    && let Some(content) = self.file(&from.s).cloned()
                {
                    self.keep(&to.s, content);
                }
            }
            "curl" | "wget" | "aria2c" | "fetch" | "axel" | "nscurl" => {
                for file in downloads(command) {
                    self.keep(&file, ByteFlow::unknown(TaintSet::NETWORK));
                }
            }
            "ftpget" | "tftp" | "smbget" | "scp" | "rsync" | "sftp" | "atftp" => {
                for file in brought(command, &operands) {
                    self.keep(&file, ByteFlow::unknown(TaintSet::NETWORK));
                }
            }
            // What a compiler makes of a source is the source.
            "gcc" | "g++" | "cc" | "c++" | "clang" | "tcc" | "rustc" | "ghc" => {
                let source = operands.iter().find_map(|text| self.file(&text.s).cloned());
                if let Some(source) = source.filter(|source| source.taint.has(TaintSet::NETWORK)) {
                    let made = command
                        .values_of("-o")
                        .pop()
                        .unwrap_or_else(|| "a.out".to_owned());
                    self.keep(&made, ByteFlow::unknown(source.taint));
                }
            }
            "tar" | "gtar" | "bsdtar" | "unzip" | "7z" | "cpio" => {
                let fetched = |flow: &ByteFlow| flow.taint.has(TaintSet::NETWORK);
                let from_file = operands
                    .iter()
                    .any(|text| self.file(&text.s).is_some_and(fetched));
                if from_file || fetched(&command.input) {
                    self.keep(UNPACKED, ByteFlow::unknown(TaintSet::NETWORK));
                }
            }
            _ => self.forget_changed(command),
        }
    }

    /// That a file is written where something starts it is asked about anyway. What it would start may
    /// be of the worst kind.
    fn look_at_later(&mut self, path: &str, content: &ByteFlow) {
        let Some(text) = content.known.as_deref() else {
            return;
        };
        let full = paths::absolute(path, self.workdir());
        for later in super::wrap_remote::written_for_later(&full, text) {
            self.worst_of(|walker| {
                walker.run_text(&later, "a job", &ByteFlow::default());
            });
        }
    }

    /// Whether a file that nobody wrote here may have come out of an archive that was fetched. What
    /// prepares a build is left to whoever builds.
    fn is_unpacked(&self, path: &str) -> bool {
        const PREPARES: &[&str] = &["configure", "autogen.sh", "bootstrap", "gradlew", "mvnw"];
        let place = paths::place(path, self.workdir(), self.context);
        self.file(UNPACKED).is_some()
            && !PREPARES.contains(&base_name(path))
            && !matches!(place, PathLoss::InsideSystem | PathLoss::System)
    }

    /// What an editor leaves in a file that the same text wrote is not what was written.
    fn forget_changed(&mut self, command: &ReducedCommand) {
        if self.files.is_empty() {
            return;
        }
        let copied = command
            .args()
            .iter()
            .filter_map(|arg| arg.s.strip_prefix("of="))
            .map(ExpandedText::known);
        for file in copied.chain(crate::programs::protected::targets(command)) {
            if self.file(&file.s).is_some() {
                self.keep(
                    &file.s,
                    ByteFlow::unknown(TaintSet::FILE | TaintSet::DECODED),
                );
            }
        }
    }

    /// What the same text put into a file.
    pub(super) fn file(&self, path: &str) -> Option<&ByteFlow> {
        self.files.get(&paths::absolute(path, self.workdir()))
    }

    /// Runs a file by its path, if the same text wrote it.
    pub(super) fn run_own_file(&mut self, path: &str) {
        let name = base_name(path).to_owned();
        let Some(content) = self.file(path).cloned() else {
            if self.is_unpacked(path) {
                self.find(HarmFinding::dangerous(
                    HarmCategory::RemoteCode,
                    format!("runs what it downloads: {name}"),
                ));
            }
            return;
        };
        if content.known.is_some() {
            self.run_flow(&content, &name);
        } else if content.taint.has(TaintSet::NETWORK) {
            self.find(HarmFinding::dangerous(
                HarmCategory::RemoteCode,
                format!("runs what it downloads: {name}"),
            ));
        } else if content.taint.has(TaintSet::DECODED) {
            self.judge_unknown_code(content.taint, &name);
        }
    }

    pub(super) fn keep(&mut self, path: &str, content: ByteFlow) {
        if self.files.len() < MOST_KNOWN_FILES
            && (!path.starts_with("/dev/") || path.starts_with("/dev/shm/"))
        {
            let path = paths::absolute(path, self.workdir());
            let content = match self.files.remove(&path) {
                Some(before) if before != content => together(before, content),
                _ => content,
            };
            self.files.insert(path, content);
        }
    }
}

/// Something was written twice: the second time may have added to it, or not have happened.
fn together(before: ByteFlow, after: ByteFlow) -> ByteFlow {
    let has = |text: &Option<String>, part: &Option<String>| match (text, part) {
        (Some(text), Some(part)) => text.contains(part.as_str()),
        _ => false,
    };
    if has(&before.known, &after.known) {
        return before;
    }
    before.then(after, super::LONGEST_TEXT)
}

/// Names under which a file of another machine is stored.
fn brought(command: &ReducedCommand, operands: &[&ExpandedText]) -> Vec<String> {
    let last = |path: &str| base_name(path.trim_end_matches('/')).to_owned();
    match command.program() {
        "ftpget" => operands
            .get(1)
            .map(|text| last(&text.s))
            .into_iter()
            .collect(),
        "tftp" | "atftp" => ["-l", "-r"]
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .map(|name| last(&name))
            .collect(),
        _ => {
            let Some((to, from)) = operands.split_last() else {
                return Vec::new();
            };
            let remote = |text: &&&ExpandedText| {
                text.s
                    .split_once(':')
                    .is_some_and(|(host, _)| !host.contains('/'))
            };
            let names = from.iter().filter(remote).map(|text| {
                let path = text.s.rsplit(':').next().unwrap_or_default();
                last(path)
            });
            let folder = to.s.trim_end_matches('/');
            names
                .flat_map(|name| [to.s.clone(), format!("{folder}/{name}")])
                .collect()
        }
    }
}

/// Names under which a download is stored.
fn downloads(command: &ReducedCommand) -> Vec<String> {
    let named: Vec<String> = ["-o", "-O", "--output", "--output-document"]
        .iter()
        .filter(|flag| !matches!((command.program(), **flag), ("curl", "-O") | ("wget", "-o")))
        .flat_map(|flag| command.values_of(flag))
        .filter(|name| name != "-" && !name.is_empty())
        .collect();
    if !named.is_empty() {
        return named;
    }
    let by_url = command.program() != "curl" || command.short('O') || command.long("--remote-name");
    if !by_url {
        return Vec::new();
    }
    command
        .operands()
        .filter(|text| text.s.contains("//") || text.s.contains('.'))
        .map(|text| {
            let path = text.s.split(['?', '#']).next().unwrap_or_default();
            base_name(path).to_owned()
        })
        .filter(|name| !name.is_empty())
        .map(|name| {
            match command
                .value_of("-P")
                .or_else(|| command.value_of("--directory-prefix"))
            {
                Some(folder) => format!("{}/{name}", folder.s),
                None => name,
            }
        })
        .collect()
}
