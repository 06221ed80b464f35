//! The options themselves.

use super::{Hook, Usual};

const TAR: &[&str] = &["tar", "gtar", "bsdtar"];
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "true"];

/// A hook for each line.
const fn hook(
    programs: &'static [&'static str],
    options: &'static [&'static str],
    usual: Usual,
) -> Hook {
    Hook {
        programs,
        options,
        usual,
    }
}

#[rustfmt::skip]
pub(super) const HOOKS: &[Hook] = &[
    // Archives and copies.
    hook(TAR, &["--checkpoint-action"], Usual::Without(&["exec"])),
    hook(TAR, &["--to-command", "--use-compress-program", "-I", "--rsh-command", "--rmt-command"], Usual::Tool),
    hook(TAR, &["--info-script", "--new-volume-script"], Usual::Nothing),
    hook(&["cpio"], &["--rsh-command"], Usual::Tool),
    hook(&["zip"], &["-TT", "--unzip-command"], Usual::Tool),
    hook(&["rsync"], &["-e", "--rsh"], Usual::One(&["ssh", ""])),
    hook(&["rsync"], &["--rsync-path"], Usual::One(&["rsync"])),
    hook(&["scp", "sftp"], &["-S", "-D"], Usual::One(&["ssh"])),
    hook(&["sshfs"], &["ssh_command="], Usual::One(&["ssh"])),
    hook(&["split"], &["--filter"], Usual::Filter),
    hook(&["sort"], &["--compress-program"], Usual::Tool),
    hook(&["strace", "ltrace"], &["-o", "--output"], Usual::Without(&["|", "!"])),
    hook(&["tcpdump"], &["-z"], Usual::One(&["gzip", "bzip2", "xz"])),
    hook(&["aria2c"], &["--on-download-error", "--on-download-complete", "--on-download-start", "--on-download-stop", "--on-download-pause"], Usual::Nothing),
    hook(&["dmsetup"], &["--exec"], Usual::Nothing),
    hook(&["msgfilter"], &["-P"], Usual::Nothing),
    hook(&["cpulimit", "cdist"], &["-s"], Usual::Nothing),
    hook(&["bpftrace"], &["-c", "-e"], Usual::Without(&["system(", "/bin/sh", "bash"])),
    hook(&["hg"], &["--config"], Usual::Without(&["=!", "hooks.", "shell", "editor=", "extdiff"])),
    hook(&["pip", "pip3"], &["--editor"], Usual::Tool),
    hook(&["check_by_ssh"], &["-o"], Usual::Nothing),
    hook(&["grc"], &["--pty"], Usual::Without(&["/bin/sh", "bash"])),
    hook(&["git"], &["--exec-path"], Usual::Settled),
    hook(&["mysql", "mariadb"], &["--default-auth", "--plugin-dir"], Usual::Without(&["/"])),
    hook(&["needrestart", "fastfetch", "rsyslogd", "supervisord"], &["-c", "-f"], Usual::Settled),
    hook(&["minicom"], &["-S"], Usual::Settled),
    hook(&["rustup"], &["link"], Usual::Settled),
    hook(&["genie", "tmux"], &["-c"], Usual::Without(&["/bin/sh", "bash", " "])),
    hook(&["ffmpeg"], &["-af"], Usual::Without(&["ladspa=file", "lv2"])),
    hook(&["rpmdb", "rpmquery", "rpmverify"], &["--eval", "-E"], Usual::Without(&["%(", "%{lua"])),
    hook(&["logrotate", "cowthink"], &["-f"], Usual::Settled),
    hook(&["puppet", "facter"], &["--confdir", "--external-dir"], Usual::Settled),
    // Readers, pagers, editors.
    hook(&["rg", "ripgrep"], &["--pre"], Usual::One(&["pdftotext", "zcat"])),
    hook(&["rg", "ripgrep"], &["--hostname-bin"], Usual::Nothing),
    hook(&["ag", "ack", "man", "mysql", "psql"], &["--pager"], Usual::Tool),
    hook(&["man"], &["-P"], Usual::Tool),
    hook(&["man"], &["-H", "--html"], Usual::Without(&[" ", "/"])),
    hook(&["nano", "pico"], &["-s", "--speller"], Usual::One(&["aspell", "hunspell", "ispell"])),
    hook(&["vi", "vim", "nvim"], &["-u", "-S"], Usual::Settled),
    hook(&["emacs"], &["--eval", "-eval", "--funcall", "-f"], Usual::Without(&["shell-command", "call-process", "start-process", "delete-", "(term", "make-process"])),
    hook(&["emacs"], &["-l", "--load", "--script"], Usual::Settled),
    hook(&["fzf"], &["--preview", "--bind"], Usual::Without(&["curl", "rm ", "| sh", "|sh", "wget", "sh -c"])),
    hook(&["run-mailcap"], &["--action"], Usual::Without(&["sh", "exec"])),
    // Fetchers.
    hook(&["wget"], &["--use-askpass"], Usual::Nothing),
    hook(&["wget"], &["-e", "--execute"], Usual::Without(&["use_askpass", "output_document", "post_file"])),
    hook(&["curl"], &["-K", "--config"], Usual::Settled),
    hook(&["curl"], &["--engine"], Usual::Name),
    hook(&["openssl"], &["-engine", "-provider"], Usual::Name),
    hook(&["openssl"], &["-provider-path"], Usual::Settled),
    hook(&["nmap"], &["--script"], Usual::Name),
    // Builders and languages.
    hook(&["make", "gmake"], &["-f", "--file", "--makefile"], Usual::Settled),
    hook(&["make", "gmake"], &["SHELL="], Usual::Bare(SHELLS)),
    hook(&["make", "gmake"], &["--eval"], Usual::Nothing),
    hook(&["cmake"], &["-P"], Usual::Settled),
    hook(&["npm", "pnpm", "yarn"], &["--script-shell", "--shell"], Usual::Bare(SHELLS)),
    hook(&["gcc", "g++", "cc", "c99", "c89", "clang"], &["-wrapper"], Usual::Nothing),
    hook(&["gcc", "g++", "cc", "clang"], &["-fplugin", "-specs", "-B"], Usual::Settled),
    hook(&["ld"], &["-plugin", "--plugin"], Usual::Settled),
    hook(&["cargo"], &["--config"], Usual::Without(&["runner", "linker", "wrapper"])),
    hook(&["rustc"], &["-C", "--codegen", "-Clinker"], Usual::Settled),
    hook(&["go"], &["-toolexec", "-exec"], Usual::One(&["time", "garble", "env"])),
    hook(&["go"], &["-vettool", "-ldflags"], Usual::Settled),
    hook(&["awk", "gawk"], &["-i", "-l", "--include", "--load"], Usual::Settled),
    hook(&["terraform", "tofu"], &["-plugin-dir"], Usual::Settled),
    hook(&["lua", "luajit"], &["-l"], Usual::Name),
    hook(&["node", "nodejs"], &["-r", "--require", "--import", "--loader"], Usual::Settled),
    hook(&["ruby", "irb", "pry"], &["-r"], Usual::Settled),
    hook(&["perl"], &["-I"], Usual::Settled),
    hook(&["php"], &["-d"], Usual::Settled),
    hook(&["java"], &["-cp", "-classpath", "-jar"], Usual::Settled),
    hook(&["pandoc"], &["-F", "--filter", "-L", "--lua-filter"], Usual::Settled),
    hook(&["rake", "gem"], &["-r", "-e"], Usual::Settled),
    hook(&["cowsay", "cowthink"], &["-f"], Usual::Settled),
    hook(&["gdb", "lldb"], &["-x", "--command", "-s", "--source"], Usual::Settled),
    hook(&["facter", "puppet"], &["--custom-dir", "--modulepath"], Usual::Settled),
    // Packages.
    hook(&["apt", "apt-get"], &["-o", "--option"], Usual::Without(&["invoke", "::pager", "dir::bin"])),
    hook(&["apt", "apt-get", "yum", "dnf"], &["-c", "--config", "--config-file"], Usual::Settled),
    hook(&["dnf", "yum"], &["--setopt"], Usual::Settled),
    hook(&["dpkg"], &["--pre-invoke", "--post-invoke"], Usual::Nothing),
    hook(&["rpm", "rpmbuild"], &["--eval", "-E"], Usual::Without(&["%(", "%{lua"])),
    hook(&["rpm"], &["--pipe"], Usual::Tool),
    // Servers and orders that are read from a file.
    hook(&["nginx"], &["-c", "-p"], Usual::Settled),
    hook(&["apache2", "httpd", "apachectl", "haproxy", "sshd", "tmux"], &["-f"], Usual::Settled),
    hook(&["supervisord", "screen", "zathura"], &["-c"], Usual::Settled),
    hook(&["dnsmasq"], &["-C", "--dhcp-script"], Usual::Settled),
    hook(&["nginx"], &["-g"], Usual::Without(&["load_module"])),
    hook(&["openvpn", "pppd"], &["--config"], Usual::Settled),
    hook(&["openvpn", "pppd", "dhclient"], &["--up", "--down", "--route-up", "-sf"], Usual::System),
    hook(&["ssh", "scp", "sftp", "mutt"], &["-F"], Usual::Settled),
    hook(&["ssh-keygen"], &["-D"], Usual::System),
    hook(&["git"], &["--exec-path"], Usual::System),
    hook(&["ssh-agent"], &["-P"], Usual::System),
    hook(&["ssh-add"], &["-s"], Usual::System),
    hook(&["latexmk"], &["-e", "-pdflatex"], Usual::Without(&["system", "sh "])),
    hook(&["busctl"], &["--address"], Usual::Without(&["unixexec"])),
    hook(&["sqlite3"], &["-init"], Usual::Settled),
    hook(&["logrotate", "run-parts", "ansible-playbook", "wg-quick", "redis-server"], &[], Usual::Settled),
    hook(&["ld.so", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-linux.so.2"], &["--preload", "--audit"], Usual::Nothing),
];

/// Switches that need no value to let something run.
pub(super) const SWITCHES: &[(&[&str], &str)] = &[
    (&["nmap"], "--interactive"),
    (&["dvips"], "-R0"),
    (&["gs", "ghostscript"], "-dNOSAFER"),
    (&["snap"], "--dangerous"),
    (&["snap"], "--devmode"),
];
