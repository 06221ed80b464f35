//! Options and operands that write, of programs that are for something else.
//!
//! A capture, a log, a transcript, a profile, an archive laid out elsewhere: whoever may name the
//! file writes it. The rows name options whose value is a file or a folder that is written.

mod said;

use crate::effective::ReducedCommand;
use crate::text::ExpandedText;
use said::said;

struct ReachRow {
    programs: &'static [&'static str],
    /// Values that are files.
    files: &'static [&'static str],
    /// Values that are folders in which something is made.
    folders: &'static [&'static str],
}

const fn row(
    programs: &'static [&'static str],
    files: &'static [&'static str],
    folders: &'static [&'static str],
) -> ReachRow {
    ReachRow {
        programs,
        files,
        folders,
    }
}

#[rustfmt::skip]
const ROWS: &[ReachRow] = &[
    // Captures, traces, transcripts.
    row(&["tcpdump", "tshark", "dumpcap", "ngrep"], &["-w", "-O"], &[]),
    row(&["wget", "wget2"], &["-o", "-O", "-a", "--output-file", "--append-output", "--output-document", "--save-cookies", "--hsts-file", "--warc-file"], &["-P", "--directory-prefix"]),
    row(&["curl"], &["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "--libcurl", "--etag-save", "--hsts", "--alt-svc"], &["--output-dir"]),
    row(&["aria2c"], &["-o", "--out", "-l", "--log", "--save-session"], &["-d", "--dir"]),
    row(&["axel", "lynx", "w3m"], &["-o", "-cfg_log"], &[]),
    row(&["http", "https", "xh"], &["-o", "--output"], &[]),
    row(&["strace", "ltrace", "perf", "bpftrace"], &["-o", "--output"], &[]),
    row(&["nmap", "masscan"], &["-oN", "-oX", "-oG", "-oA", "-oS", "-oJ", "-oL"], &[]),
    row(&["screen"], &["-Logfile", "-L"], &[]),
    row(&["varnishncsa", "varnishlog"], &["-w", "-P"], &[]),
    row(&["rustdoc"], &[], &["-o", "--out-dir"]),
    row(&["xwd", "scrot", "import", "maim", "grim"], &["-out", "-o"], &[]),
    row(&["valgrind"], &["--log-file", "--xml-file", "--massif-out-file", "--callgrind-out-file"], &[]),
    row(&["socat"], &["-lf", "-r", "-R"], &[]),
    row(&["gcore", "gdb"], &["-o"], &[]),
    row(&["node", "nodejs"], &["--redirect-warnings", "--trace-event-file-pattern"], &["--cpu-prof-dir", "--heap-prof-dir", "--diagnostic-dir", "--report-dir"]),
    row(&["java"], &["-Xlog:gc", "-Xloggc", "-XX:HeapDumpPath"], &[]),
    row(&["python", "python3"], &["-X"], &[]),
    row(&["snort", "suricata"], &["-l"], &["-l"]),
    row(&["mtr", "iperf3", "fping"], &["--logfile"], &[]),
    row(&["sshd", "ssh"], &["-E"], &[]),
    row(&["openvpn"], &["--log", "--log-append", "--status", "--writepid"], &[]),
    row(&["dnsmasq"], &["--log-facility", "--pid-file", "--dhcp-leasefile"], &[]),
    row(&["start-stop-daemon"], &["--pidfile", "-p", "--output", "-O"], &[]),
    row(&["logrotate"], &["-l", "-s", "--log", "--state"], &[]),
    row(&["nginx"], &["-e"], &[]),
    row(&["make", "gmake"], &[], &["DESTDIR=", "prefix=", "bindir="]),
    // Filters and converters.
    row(&["sort", "gsort", "shuf", "iconv", "xmllint", "xsltproc", "pandoc", "indent", "protoc", "cscope", "bison", "flex"], &["-o", "--output"], &[]),
    row(&["base64", "uuencode", "uudecode"], &["-o", "--output-file"], &[]),
    row(&["dialog", "whiptail"], &["--output-file"], &[]),
    row(&["openssl"], &["-out", "-keyout", "-writerand", "-CAserial"], &["-outdir"]),
    row(&["gpg", "gpg2"], &["-o", "--output", "--logger-file", "--status-file"], &[]),
    row(&["age", "sops"], &["-o", "--output"], &[]),
    row(&["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "rustc", "ghc", "tcc", "nasm", "go", "javac", "objcopy", "strip"], &["-o", "--output"], &["-d"]),
    row(&["yq", "jq"], &["-o"], &[]),
    row(&["csplit"], &["-f", "--prefix"], &[]),
    row(&["patch"], &["-o", "--output", "-r"], &["-d", "--directory"]),
    row(&["enscript", "a2ps"], &["-o", "-p", "--output"], &[]),
    row(&["dvips", "groff", "pdftotext"], &["-o"], &[]),
    row(&["msgfmt", "msgmerge", "xgettext"], &["-o", "--output-file"], &[]),
    row(&["readelf", "dialyzer", "doxygen"], &[], &[]),
    row(&["basenc", "split"], &[], &[]),
    // Archives.
    row(&["tar", "gtar", "bsdtar"], &["--index-file"], &["-C", "--directory", "--one-top-level"]),
    row(&["unzip"], &[], &["-d"]),
    row(&["7z", "7za", "7zr"], &[], &["-o"]),
    row(&["cpio"], &["-O"], &["-D", "--directory"]),
    row(&["ar"], &[], &["--output"]),
    row(&["jar"], &[], &["-C", "--dir"]),
    row(&["unsquashfs"], &[], &["-d", "-dest"]),
    row(&["rpm", "zypper", "dnf", "yum", "apk", "pacman", "xbps-install"], &[], &["--root", "--installroot", "-r"]),
    row(&["git"], &["-o", "--output", "--file"], &["--directory", "--output-directory", "--separate-git-dir", "--template", "--work-tree"]),
    row(&["svn", "hg"], &[], &["--config-dir"]),
    // Databases.
    row(&["mysqldump", "mariadb-dump"], &["-r", "--result-file", "--log-error"], &["-T", "--tab"]),
    row(&["pg_dump", "pg_dumpall", "pg_restore"], &["-f", "--file"], &[]),
    row(&["psql"], &["-o", "--output", "-L", "--log-file"], &[]),
    row(&["mysql"], &["--tee"], &[]),
    row(&["mongodump", "mongoexport"], &["--archive"], &["-o", "--out"]),
    row(&["redis-cli"], &["--rdb"], &[]),
    // Packages.
    row(&["pip", "pip3"], &["--log", "--report"], &["-t", "--target", "-d", "--dest", "--prefix", "--root", "-w", "--wheel-dir"]),
    row(&["npm"], &[], &["--pack-destination"]),
    row(&["gem"], &[], &["-i", "--install-dir", "-n", "--bindir"]),
    row(&["cargo"], &[], &["--root", "--target-dir", "--out-dir", "--artifact-dir"]),
    row(&["cmake"], &[], &["--prefix"]),
    row(&["cp", "mv", "install", "ln"], &[], &["-t", "--target-directory"]),
    row(&["rsync"], &["--log-file", "--write-batch"], &["--backup-dir", "--partial-dir", "--temp-dir", "-T"]),
    row(&["restic", "borg"], &[], &["-t", "--target"]),
    row(&["certbot"], &["--fullchain-path", "--key-path"], &["--config-dir", "--logs-dir"]),
    row(&["busctl", "systemd-cat"], &[], &[]),
    row(&["rlwrap"], &["-l", "-H", "--logfile", "--history-filename"], &[]),
    row(&["exiftool"], &["-filename=", "-FileName=", "-o", "-w"], &["-directory="]),
    row(&["arj", "lha", "unace"], &[], &["-ht"]),
    row(&["wireshark", "ettercap", "kismet"], &["-w"], &[]),
    row(&["ffmpeg", "sox", "convert", "magick"], &["-report"], &[]),
    row(&["minicom", "cu", "picocom"], &["-C", "--capturefile", "--logfile"], &[]),
    row(&["ansible-galaxy"], &[], &["-p", "--roles-path"]),
    row(&["kubectl", "oc"], &[], &["--output-directory"]),
];

/// Values that the rows name, and operands that are written by their place.
pub(super) fn written(command: &ReducedCommand) -> Vec<ExpandedText> {
    let program = command.program();
    let mut targets = Vec::new();
    for row in ROWS.iter().filter(|row| row.programs.contains(&program)) {
        for option in row.files {
            targets.extend(values(command, option).into_iter().map(ExpandedText::known));
        }
        // Where an archive is made, `-C` is where its files come from.
        if packs(command) {
            continue;
        }
        for option in row.folders {
            targets.extend(values(command, option).iter().map(|folder| inside(folder)));
        }
    }
    targets.extend(operands(command));
    targets.extend(extracted_here(command));
    targets.retain(|target| !matches!(target.s.as_str(), "" | "-" | "-/x"));
    targets
}

/// Long options of any program that say by their name that they write.
pub(super) fn by_name(command: &ReducedCommand) -> Vec<ExpandedText> {
    const SAYS: &[&str] = &[
        "output",
        "logfile",
        "log-file",
        "dump",
        "save-",
        "record",
        "trace-file",
        "stderr",
        "append",
        "export-",
        "transcript",
        "write-",
        "outfile",
        "out-file",
        "destination",
    ];
    let args = command.args();
    let mut targets = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let Some(option) = arg.s.strip_prefix("--") else {
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, args.get(at + 1).map(|next| next.s.as_str())),
        };
        if let Some(value) = value.filter(|value| value.starts_with('/'))
            && SAYS.iter().any(|word| name.contains(word))
            && !value.starts_with("/var/log/")
        {
            targets.push(ExpandedText::known(value));
        }
    }
    targets
}

fn inside(folder: &str) -> ExpandedText {
    if folder.is_empty() {
        return ExpandedText::default();
    }
    if folder == "/" {
        return ExpandedText::known("/usr/bin/x");
    }
    ExpandedText::known(format!("{}/x", folder.trim_end_matches('/')))
}

fn values(command: &ReducedCommand, option: &str) -> Vec<String> {
    let args = command.args();
    if option.ends_with('=') {
        return args
            .iter()
            .filter_map(|arg| arg.s.strip_prefix(option))
            .map(str::to_owned)
            .collect();
    }
    // `-oN file`, `-keyout file`: words behind one dash.
    if option.starts_with('-') && !option.starts_with("--") && option.len() > 2 {
        let mut values = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            if arg.s == option {
                values.extend(args.get(at + 1).map(|next| next.s.clone()));
            } else if let Some(rest) = arg.s.strip_prefix(option) {
                values.push(rest.trim_start_matches(['=', ':']).to_owned());
            }
        }
        return values;
    }
    command.values_of(option)
}

/// Operands that are written because of where they stand.
fn operands(command: &ReducedCommand) -> Vec<ExpandedText> {
    let operands: Vec<&ExpandedText> = command.operands().collect();
    let last = || operands.last().map(|text| (*text).clone());
    let local = |text: &ExpandedText| !text.s.contains(':');
    let found: Option<ExpandedText> = match command.program() {
        "uniq" if operands.len() == 2 => last(),
        "xxd" if operands.len() == 2 => last(),
        "split" => {
            let files: Vec<&&ExpandedText> = operands
                .iter()
                .filter(|text| {
                    !command.args().windows(2).any(|pair| {
                        std::ptr::eq(&raw const pair[1], **text)
                            && matches!(pair[0].s.as_str(), "-n" | "-l" | "-b" | "-a" | "-C" | "-t")
                    })
                })
                .collect();
            files.get(1).map(|text| (**text).clone())
        }
        "docker" | "podman" | "nerdctl" if command.operand(0) == "cp" => last().filter(local),
        "docker" | "podman" if command.operand(1) == "cp" => last().filter(local),
        "kubectl" | "oc" if command.operand(0) == "cp" => last().filter(local),
        "lxc" | "incus" if command.operand(0) == "file" && command.operand(1) == "pull" => last(),
        "dpkg-deb" | "dpkg"
            if command.short('x') || command.short('X') || command.long("--extract") =>
        {
            last().map(|folder| inside(&folder.s))
        }
        "unrar" | "rar" if matches!(command.operand(0), "x" | "e") && operands.len() > 2 => {
            last().map(|folder| inside(&folder.s))
        }
        "sftp" if operands.len() == 2 && operands[0].s.contains(':') => last(),
        "lwp-download" | "lwp-mirror" if operands.len() == 2 => last(),
        "tftp" | "atftp" => after_word(command, "get", 2),
        "aws" | "gsutil" | "rclone" | "gcloud" | "s3cmd" | "mc" | "az" => {
            last().filter(|text| text.s.starts_with(['/', '~', '.']))
        }
        "script" | "scriptlive" => last().filter(|text| {
            !command.value_of("-c").is_some_and(|value| {
                std::ptr::eq(value, operands[operands.len() - 1]) || value.s == text.s
            })
        }),
        "git" if command.operand(0) == "config" && command.short('f') => {
            command.value_of("-f").cloned()
        }
        "python" | "python3" if command.has_arg("zipfile") || command.has_arg("tarfile") => {
            let unpacks = command.short('e') || command.long("--extract");
            last()
                .filter(|_| unpacks && operands.len() > 1)
                .map(|folder| inside(&folder.s))
        }
        "git" if command.operand(0) == "bundle" && command.operand(1) == "create" => {
            operands.get(2).map(|text| (*text).clone())
        }
        "git" if command.operand(0) == "clone" && operands.len() > 2 => {
            last().map(|folder| inside(&folder.s))
        }
        "ssh-keygen"
            if !["l", "y", "F", "B", "R", "H", "e"]
                .iter()
                .any(|flag| command.short(flag.chars().next().unwrap_or(' '))) =>
        {
            command
                .value_of("-f")
                .filter(|key| key.s.starts_with("/etc/") || key.s.starts_with("/root/"))
                .cloned()
        }
        "ftp" => command.value_of("-o").cloned(),
        "Out-File" | "Set-Content" | "Add-Content" | "Tee-Object" => last(),
        _ => None,
    };
    let mut found: Vec<ExpandedText> = found.into_iter().collect();
    found.extend(said(command));
    found
}

/// The word that stands so many places behind another.
fn after_word(command: &ReducedCommand, word: &str, places: usize) -> Option<ExpandedText> {
    let args = command.args();
    let at = args.iter().position(|arg| arg.s == word)?;
    args.get(at + places).cloned()
}

/// Whether an archive is made or only looked into.
fn packs(command: &ReducedCommand) -> bool {
    let first = command.operand_or_flag();
    let bundle = first.trim_start_matches('-');
    matches!(command.program(), "tar" | "gtar" | "bsdtar")
        && !first.starts_with("--")
        && bundle.starts_with(['c', 't', 'r', 'u'])
        && !bundle.contains('x')
}

/// Archives are laid out where one stands.
fn extracted_here(command: &ReducedCommand) -> Option<ExpandedText> {
    let first = command.operand_or_flag();
    let extracts = match command.program() {
        "tar" | "gtar" | "bsdtar" => {
            command.short('x') || command.long("--extract") || first.starts_with('x')
        }
        "cpio" => command.short('i'),
        "unzip" => !command.short('l') && !command.short('p') && !command.short('t'),
        "7z" | "7za" | "unrar" => matches!(first, "x" | "e"),
        "ar" => first.trim_start_matches('-').starts_with('x'),
        "jar" => first.trim_start_matches('-').starts_with('x'),
        _ => false,
    };
    let cwd = command.cwd.as_deref()?;
    (extracts && !cwd.contains(crate::text::is_hole)).then(|| inside(cwd))
}

/// What socat is given last is where it writes to.
fn is_last(command: &ReducedCommand, text: &str) -> bool {
    command.operands().last().is_some_and(|last| last.s == text)
}
