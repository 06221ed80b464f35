//! Programs that list files: what they print, as patterns and places.
//!
//! What `find / -type f` prints is every file there is, and what `ls /etc` prints is every name in
//! it, so whoever is fed by them does to all of them what it does to one. `**` after a folder is all
//! files below it.

use crate::effective::{ReducedCommand, base_name};
use crate::text::{BELOW, ExpandedText, HOLE};

/// What a search is told to look at.
pub(crate) struct FileSearch<'a> {
    pub(crate) places: Vec<&'a str>,
    /// The only names that can be found, if there are any.
    names: Vec<&'a str>,
    /// Whether a test leaves most things out.
    pub(crate) narrow: bool,
    /// Whether only an age, an owner or a mode does, which most files of a system share.
    pub(crate) by_age: bool,
    /// Whether folders can be found as well as files.
    folders: bool,
    /// Whether nothing but folders can be.
    only_folders: bool,
}

impl<'a> FileSearch<'a> {
    /// Of `find`'s arguments, up to the first that does something.
    pub(crate) fn of(args: &'a [ExpandedText]) -> Self {
        const DOES: &[&str] = &[
            "-exec", "-execdir", "-ok", "-okdir", "-delete", "-print", "-print0", "-printf", "-ls",
            "-fprint", "-fls", "-fprintf", "-quit",
        ];
        let args: Vec<&str> = args.iter().map(|arg| arg.s.as_str()).collect();
        let start = args
            .iter()
            .position(|arg| {
                arg.starts_with('-') && !matches!(*arg, "-H" | "-L" | "-P")
                    || matches!(*arg, "(" | "!" | "\\(")
            })
            .unwrap_or(args.len());
        let (places, tests) = args.split_at(start);
        let mut places: Vec<&str> = places
            .iter()
            .filter(|arg| !arg.starts_with('-'))
            .copied()
            .collect();
        if places.is_empty() {
            places.push(".");
        }
        let end = tests
            .iter()
            .position(|test| DOES.contains(test))
            .unwrap_or(tests.len());
        let mut search = Self {
            places,
            names: Vec::new(),
            narrow: false,
            by_age: false,
            folders: true,
            only_folders: false,
        };
        search.read(&tests[..end]);
        search
    }

    fn read(&mut self, tests: &[&'a str]) {
        let (mut aged, mut named) = (false, false);
        let mut negated = false;
        let mut either = false;
        let mut others = false;
        let mut names = Vec::new();
        let mut at = 0;
        while at < tests.len() {
            let value = tests.get(at + 1).copied().unwrap_or_default();
            let mut narrows = false;
            let test = tests[at];
            match tests[at] {
                "!" | "-not" => {
                    negated = !negated;
                    at += 1;
                    continue;
                }
                "-o" | "-or" | "," => either = true,
                "-type" => {
                    if !negated && !value.contains('d') {
                        self.folders = false;
                    }
                    self.only_folders |= !negated && value == "d";
                    at += 1;
                }
                "-maxdepth" | "-mindepth" => at += 1,
                "-name" | "-iname" | "-wholename" | "-path" | "-ipath" | "-regex" | "-iregex" => {
                    narrows = !value.trim_matches(['*', '.', '/', '?']).is_empty();
                    if matches!(tests[at], "-name" | "-iname") && !negated && value != "*" {
                        names.push(value);
                    } else {
                        others = true;
                    }
                    at += 1;
                }
                "-empty" => narrows = true,
                "-nouser" | "-nogroup" | "-executable" => narrows = true,
                "-mtime" | "-atime" | "-ctime" | "-mmin" | "-amin" | "-cmin" | "-size"
                | "-newer" | "-user" | "-group" | "-perm" | "-uid" | "-gid" | "-links"
                | "-inum" | "-samefile" | "-newermt" | "-fstype" | "-used" => {
                    // Every file has a size, and root owns nearly every one of a system.
                    let shared = match tests[at] {
                        "-size" => value.starts_with("+0"),
                        "-user" | "-group" | "-uid" | "-gid" => {
                            matches!(value, "root" | "0" | "wheel")
                        }
                        _ => false,
                    };
                    narrows = !shared;
                    at += 1;
                }
                _ => {}
            }
            if narrows && !negated {
                self.narrow = true;
                let shared = matches!(
                    test,
                    "-newer"
                        | "-newermt"
                        | "-perm"
                        | "-atime"
                        | "-mtime"
                        | "-ctime"
                        | "-uid"
                        | "-gid"
                        | "-fstype"
                        | "-executable"
                );
                aged |= shared;
                named |= !shared;
            }
            negated = false;
            at += 1;
        }
        self.by_age = aged && !named;
        // `A -o B` is what either of them leaves; names are narrow still.
        if either && (names.len() < 2 || others) {
            self.narrow = false;
        } else if names.len() == 1 || either {
            self.names = names;
        }
    }

    /// Everything it finds below one place, as paths.
    pub(crate) fn found_below(&self, place: &str) -> Vec<String> {
        let place = if place == "/" {
            ""
        } else {
            place.trim_end_matches('/')
        };
        let below = |name: &&str| format!("{place}/{BELOW}/{name}");
        if !self.names.is_empty() && !self.names.iter().any(|name| name.contains('/')) {
            return self.names.iter().take(6).map(below).collect();
        }
        // Of all files there are, whatever is old or may be run is enough to lose the machine.
        let chosen = self.narrow && !(self.by_age && place.is_empty());
        if chosen {
            return vec![format!("{place}/{BELOW}")];
        }
        let files = format!("{place}/**");
        if !self.folders {
            return vec![files];
        }
        let itself = if place.is_empty() { "/" } else { place }.to_owned();
        // To `rm -f` it is the files, to `rm -r` the folder.
        match self.only_folders || !place.starts_with('/') && !place.is_empty() {
            true => vec![itself],
            false => vec![itself, files],
        }
    }
}

impl FileSearch<'_> {
    /// All that it finds, a path on each line.
    pub(super) fn listing(&self) -> String {
        let lines: Vec<String> = self
            .places
            .iter()
            .flat_map(|place| self.found_below(place))
            .collect();
        lines.join("\n") + "\n"
    }
}

/// What `find` prints.
pub(super) fn found(command: &ReducedCommand) -> Option<String> {
    const OTHERWISE: &[&str] = &[
        "-exec", "-ok", "-printf", "-fprint", "-fls", "-ls", "-delete",
    ];
    // A format of nothing but the path is what `-print` prints.
    let format = command
        .value_of("-printf")
        .map_or("", |format| format.s.as_str());
    let paths_only = matches!(format, "%p\\n" | "%p\\0" | "%p\n" | "%p " | "%h/%f\\n");
    let otherwise = |arg: &ExpandedText| {
        !(paths_only && arg.s == "-printf")
            && OTHERWISE.iter().any(|other| arg.s.starts_with(other))
    };
    if command.args().iter().any(otherwise) {
        return None;
    }
    Some(FileSearch::of(command.args()).listing())
}

/// What `ls` prints: patterns as they are given, `*` for a folder.
pub(super) fn listed(command: &ReducedCommand) -> String {
    let themselves = command.short('d') || command.long("--directory");
    let mut lines: Vec<String> = command
        .operands()
        .map(|text| {
            if text.s.contains(HOLE) {
                "*".to_owned()
            } else if themselves || text.s.contains(['*', '?', '[']) || is_file(&text.s) {
                text.s.clone()
            } else {
                "*".to_owned()
            }
        })
        .collect();
    if lines.is_empty() {
        lines.push("*".to_owned());
    }
    lines.join("\n") + "\n"
}

/// The files `grep -l` and `rg --files` name.
pub(super) fn matching(command: &ReducedCommand) -> Option<String> {
    let all = command.program() == "rg" && command.long("--files");
    let names = command.short('l') || command.short('L') || command.long("--files-with-matches");
    if !names && !all {
        return None;
    }
    let recursive =
        command.short('r') || command.short('R') || matches!(command.program(), "rg" | "ag");
    let given = usize::from(!all && !command.short('e') && !command.short('f'));
    // A pattern that every line fits leaves no file out.
    let every = all || given == 1 && is_every_line(command.operand(0));
    let lines: Vec<String> = command
        .operands()
        .skip(given)
        .map(|text| match (recursive, every) {
            (true, true) => all_below(&text.s),
            (true, false) => some_below(&text.s),
            (false, _) => text.s.clone(),
        })
        .collect();
    Some(if lines.is_empty() {
        format!("{BELOW}\n")
    } else {
        lines.join("\n") + "\n"
    })
}

/// What a filter leaves of every file there is: nearly all of them.
pub(super) fn mostly_kept(command: &ReducedCommand) -> Option<String> {
    const FEW: usize = 100;
    let text = command.input.known.as_deref()?;
    let every = text.lines().any(|line| line.ends_with("/**"));
    let named = |text: &ExpandedText| text.s.contains(['/', '.']);
    if !every || command.operands().any(named) {
        return None;
    }
    let many = || {
        let count = command.value_of("-n").map_or("", |count| count.s.as_str());
        count.starts_with('+') || count.parse().is_ok_and(|count: usize| count >= FEW)
    };
    let kept = match command.program() {
        "shuf" | "sort" | "uniq" | "tac" => true,
        "grep" | "egrep" | "fgrep" => command.short('v') && !command.short('c'),
        "head" | "tail" => many(),
        _ => false,
    };
    kept.then(|| text.to_owned())
}

/// What other programs list that go through folders: `fd`, `du -a`, `tree -f`, `locate`, `stat`.
pub(super) fn walked(command: &ReducedCommand) -> Option<String> {
    let operands: Vec<&str> = command.operands().map(|text| text.s.as_str()).collect();
    let is_essential = || {
        operands
            .iter()
            .any(|name| crate::programs::is_essential_package(name))
    };
    let packaged = |all: bool| {
        if all {
            "/usr/**".to_owned()
        } else {
            some_below("/usr")
        }
    };
    let lines: Vec<String> = match command.program() {
        "fd" | "fdfind" => {
            let acts = ["-x", "-X", "--exec", "--exec-batch"];
            let narrowed = [
                "-e",
                "--extension",
                "-S",
                "--size",
                "--changed-within",
                "-o",
            ];
            if acts.iter().any(|flag| command.has_arg(flag)) {
                return None;
            }
            let (pattern, places) = operands.split_first()?;
            let every =
                is_every_line(pattern) && !narrowed.iter().any(|flag| command.has_arg(flag));
            let listed = |place: &&str| {
                if every {
                    all_below(place)
                } else {
                    some_below(place)
                }
            };
            places.iter().map(listed).collect()
        }
        "du" if command.short('a') || command.long("--all") => {
            let sized = |place: &&str| format!("4\t{}", all_below(place));
            operands.iter().map(sized).collect()
        }
        // The files of a package lie all over the system.
        "rpm" if command.short('l') => vec![packaged(command.short('a'))],
        "dpkg" if command.short('L') || command.long("--listfiles") => {
            vec![packaged(is_essential())]
        }
        "pacman" if command.args().iter().any(|arg| arg.s.starts_with("-Ql")) => {
            vec![packaged(operands.is_empty())]
        }
        "tree" if command.short('f') => operands.iter().map(|place| all_below(place)).collect(),
        "locate" | "plocate" | "mlocate" => {
            let listed = |pattern: &&str| match *pattern {
                "" | "/" | "*" => "/**".to_owned(),
                pattern => format!("/{BELOW}/{}", base_name(pattern)),
            };
            operands.iter().map(listed).collect()
        }
        "stat" => {
            let named = ["%n", "%N"];
            let prints = |text: &&ExpandedText| named.contains(&text.s.trim_matches(['"', '\'']));
            command
                .value_of("-c")
                .or_else(|| command.value_of("--format"))
                .filter(prints)?;
            let format = |place: &&&str| !named.contains(*place);
            operands
                .iter()
                .filter(format)
                .map(|place| (*place).to_owned())
                .collect()
        }
        "compgen" => vec![command.value_of("-G")?.s.clone()],
        _ => return None,
    };
    (!lines.is_empty()).then(|| lines.join("\n") + "\n")
}

/// A pattern that is in every line, or in every name.
fn is_every_line(pattern: &str) -> bool {
    matches!(pattern, "" | "." | "^" | "$" | ".*" | "^.*" | "*" | "^.*$")
}

/// Every file below a folder.
fn all_below(folder: &str) -> String {
    format!("{}/**", folder.trim_end_matches('/'))
}

/// Some files below a folder.
fn some_below(folder: &str) -> String {
    format!("{}/{BELOW}", folder.trim_end_matches('/'))
}

fn is_file(path: &str) -> bool {
    let name = base_name(path);
    name.find('.').is_some_and(|dot| dot > 0)
}
