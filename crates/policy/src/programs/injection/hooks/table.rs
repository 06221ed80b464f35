//! The options themselves.

use super::{OptionHook, UsualValue};

const TAR: &[&str] = &["tar", "gtar", "bsdtar"];
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "true"];

/// A hook for each line.
const fn hook(
    programs: &'static [&'static str],
    options: &'static [&'static str],
    usual: UsualValue,
) -> OptionHook {
    OptionHook {
        programs,
        options,
        usual,
    }
}

#[rustfmt::skip]
pub(super) const HOOKS: &[OptionHook] = &[
    // Archives and copies.
    hook(TAR, &["--checkpoint-action"], UsualValue::Without(&["exec"])),
    hook(TAR, &["--to-command", "--use-compress-program", "-I", "--rsh-command", "--rmt-command"], UsualValue::Tool),
    hook(TAR, &["--info-script", "--new-volume-script"], UsualValue::Nothing),
    hook(&["cpio"], &["--rsh-command"], UsualValue::Tool),
    hook(&["zip"], &["-TT", "--unzip-command"], UsualValue::Tool),
    hook(&["rsync"], &["-e", "--rsh"], UsualValue::One(&["ssh", ""])),
    hook(&["rsync"], &["--rsync-path"], UsualValue::One(&["rsync"])),
    hook(&["scp", "sftp"], &["-S", "-D"], UsualValue::One(&["ssh"])),
    hook(&["sshfs"], &["ssh_command="], UsualValue::One(&["ssh"])),
    hook(&["split"], &["--filter"], UsualValue::Filter),
    hook(&["sort"], &["--compress-program"], UsualValue::Tool),
    hook(&["strace", "ltrace"], &["-o", "--output"], UsualValue::Without(&["|", "!"])),
    hook(&["tcpdump"], &["-z"], UsualValue::One(&["gzip", "bzip2", "xz"])),
    hook(&["aria2c"], &["--on-download-error", "--on-download-complete", "--on-download-start", "--on-download-stop", "--on-download-pause"], UsualValue::Nothing),
    hook(&["dmsetup"], &["--exec"], UsualValue::Nothing),
    hook(&["msgfilter"], &["-P"], UsualValue::Nothing),
    hook(&["cpulimit", "cdist"], &["-s"], UsualValue::Nothing),
    hook(&["bpftrace"], &["-c", "-e"], UsualValue::Without(&["system(", "/bin/sh", "bash"])),
    hook(&["hg"], &["--config"], UsualValue::Without(&["=!", "hooks.", "shell", "editor=", "extdiff"])),
    hook(&["pip", "pip3"], &["--editor"], UsualValue::Tool),
    hook(&["check_by_ssh"], &["-o"], UsualValue::Nothing),
    hook(&["grc"], &["--pty"], UsualValue::Without(&["/bin/sh", "bash"])),
    hook(&["git"], &["--exec-path"], UsualValue::Settled),
    hook(&["mysql", "mariadb"], &["--default-auth", "--plugin-dir"], UsualValue::Without(&["/"])),
    hook(&["needrestart", "fastfetch", "rsyslogd", "supervisord"], &["-c", "-f"], UsualValue::Settled),
    hook(&["minicom"], &["-S"], UsualValue::Settled),
    hook(&["rustup"], &["link"], UsualValue::Settled),
    hook(&["genie", "tmux"], &["-c"], UsualValue::Without(&["/bin/sh", "bash", " "])),
    hook(&["ffmpeg"], &["-af"], UsualValue::Without(&["ladspa=file", "lv2"])),
    hook(&["rpmdb", "rpmquery", "rpmverify"], &["--eval", "-E"], UsualValue::Without(&["%(", "%{lua"])),
    hook(&["logrotate", "cowthink"], &["-f"], UsualValue::Settled),
    hook(&["puppet", "facter"], &["--confdir", "--external-dir"], UsualValue::Settled),
    // Readers, pagers, editors.
    hook(&["rg", "ripgrep"], &["--pre"], UsualValue::One(&["pdftotext", "zcat"])),
    hook(&["rg", "ripgrep"], &["--hostname-bin"], UsualValue::Nothing),
    hook(&["ag", "ack", "man", "mysql", "psql"], &["--pager"], UsualValue::Tool),
    hook(&["man"], &["-P"], UsualValue::Tool),
    hook(&["man"], &["-H", "--html"], UsualValue::Without(&[" ", "/"])),
    hook(&["nano", "pico"], &["-s", "--speller"], UsualValue::One(&["aspell", "hunspell", "ispell"])),
    hook(&["vi", "vim", "nvim"], &["-u", "-S"], UsualValue::Settled),
    hook(&["emacs"], &["--eval", "-eval", "--funcall", "-f"], UsualValue::Without(&["shell-command", "call-process", "start-process", "delete-", "(term", "make-process"])),
    hook(&["emacs"], &["-l", "--load", "--script"], UsualValue::Settled),
    hook(&["fzf"], &["--preview", "--bind"], UsualValue::Without(&["curl", "rm ", "| sh", "|sh", "wget", "sh -c"])),
    hook(&["run-mailcap"], &["--action"], UsualValue::Without(&["sh", "exec"])),
    // Fetchers.
    hook(&["wget"], &["--use-askpass"], UsualValue::Nothing),
    hook(&["wget"], &["-e", "--execute"], UsualValue::Without(&["use_askpass", "output_document", "post_file"])),
    hook(&["curl"], &["-K", "--config"], UsualValue::Settled),
    hook(&["curl"], &["--engine"], UsualValue::Name),
    hook(&["openssl"], &["-engine", "-provider"], UsualValue::Name),
    hook(&["openssl"], &["-provider-path"], UsualValue::Settled),
    hook(&["nmap"], &["--script"], UsualValue::Name),
    // Builders and languages.
    hook(&["make", "gmake"], &["-f", "--file", "--makefile"], UsualValue::Settled),
    hook(&["make", "gmake"], &["SHELL="], UsualValue::Bare(SHELLS)),
    hook(&["make", "gmake"], &["--eval"], UsualValue::Nothing),
    hook(&["cmake"], &["-P"], UsualValue::Settled),
    hook(&["npm", "pnpm", "yarn"], &["--script-shell", "--shell"], UsualValue::Bare(SHELLS)),
    hook(&["gcc", "g++", "cc", "c99", "c89", "clang"], &["-wrapper"], UsualValue::Nothing),
    hook(&["gcc", "g++", "cc", "clang"], &["-fplugin", "-specs", "-B"], UsualValue::Settled),
    hook(&["ld"], &["-plugin", "--plugin"], UsualValue::Settled),
    hook(&["cargo"], &["--config"], UsualValue::Without(&["runner", "linker", "wrapper"])),
    hook(&["rustc"], &["-C", "--codegen", "-Clinker"], UsualValue::Settled),
    hook(&["go"], &["-toolexec", "-exec"], UsualValue::One(&["time", "garble", "env"])),
    hook(&["go"], &["-vettool", "-ldflags"], UsualValue::Settled),
    hook(&["awk", "gawk"], &["-i", "-l", "--include", "--load"], UsualValue::Settled),
    hook(&["terraform", "tofu"], &["-plugin-dir"], UsualValue::Settled),
    hook(&["lua", "luajit"], &["-l"], UsualValue::Name),
    hook(&["node", "nodejs"], &["-r", "--require", "--import", "--loader"], UsualValue::Settled),
    hook(&["ruby", "irb", "pry"], &["-r"], UsualValue::Settled),
    hook(&["perl"], &["-I"], UsualValue::Settled),
    hook(&["php"], &["-d"], UsualValue::Settled),
    hook(&["java"], &["-cp", "-classpath", "-jar"], UsualValue::Settled),
    hook(&["pandoc"], &["-F", "--filter", "-L", "--lua-filter"], UsualValue::Settled),
    hook(&["rake", "gem"], &["-r", "-e"], UsualValue::Settled),
    hook(&["cowsay", "cowthink"], &["-f"], UsualValue::Settled),
    hook(&["gdb", "lldb"], &["-x", "--command", "-s", "--source"], UsualValue::Settled),
    hook(&["facter", "puppet"], &["--custom-dir", "--modulepath"], UsualValue::Settled),
    // Packages.
    hook(&["apt", "apt-get"], &["-o", "--option"], UsualValue::Without(&["invoke", "::pager", "dir::bin"])),
    hook(&["apt", "apt-get", "yum", "dnf"], &["-c", "--config", "--config-file"], UsualValue::Settled),
    hook(&["dnf", "yum"], &["--setopt"], UsualValue::Settled),
    hook(&["dpkg"], &["--pre-invoke", "--post-invoke"], UsualValue::Nothing),
    hook(&["rpm", "rpmbuild"], &["--eval", "-E"], UsualValue::Without(&["%(", "%{lua"])),
    hook(&["rpm"], &["--pipe"], UsualValue::Tool),
    // Servers and orders that are read from a file.
    hook(&["nginx"], &["-c", "-p"], UsualValue::Settled),
    hook(&["apache2", "httpd", "apachectl", "haproxy", "sshd", "tmux"], &["-f"], UsualValue::Settled),
    hook(&["supervisord", "screen", "zathura"], &["-c"], UsualValue::Settled),
    hook(&["dnsmasq"], &["-C", "--dhcp-script"], UsualValue::Settled),
    hook(&["nginx"], &["-g"], UsualValue::Without(&["load_module"])),
    hook(&["openvpn", "pppd"], &["--config"], UsualValue::Settled),
    hook(&["openvpn", "pppd", "dhclient"], &["--up", "--down", "--route-up", "-sf"], UsualValue::System),
    hook(&["ssh", "scp", "sftp", "mutt"], &["-F"], UsualValue::Settled),
    hook(&["ssh-keygen"], &["-D"], UsualValue::System),
    hook(&["git"], &["--exec-path"], UsualValue::System),
    hook(&["ssh-agent"], &["-P"], UsualValue::System),
    hook(&["ssh-add"], &["-s"], UsualValue::System),
    hook(&["latexmk"], &["-e", "-pdflatex"], UsualValue::Without(&["system", "sh "])),
    hook(&["busctl"], &["--address"], UsualValue::Without(&["unixexec"])),
    hook(&["sqlite3"], &["-init"], UsualValue::Settled),
    hook(&["logrotate", "run-parts", "ansible-playbook", "wg-quick", "redis-server"], &[], UsualValue::Settled),
    hook(&["ld.so", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-linux.so.2"], &["--preload", "--audit"], UsualValue::Nothing),
];

/// Switches that need no value to let something run.
pub(super) const SWITCHES: &[(&[&str], &str)] = &[
    (&["nmap"], "--interactive"),
    (&["dvips"], "-R0"),
    (&["gs", "ghostscript"], "-dNOSAFER"),
    (&["snap"], "--dangerous"),
    (&["snap"], "--devmode"),
];
