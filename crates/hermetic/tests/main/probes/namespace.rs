//! A test that runs itself again in a network namespace of its own.
//!
//! Stand-in addresses live on that namespace's loopback. Nothing in it leads out.

use std::fs;
use std::process::Command;

/// What the loopback of the namespace is.
pub(crate) struct Namespace {
    addresses: &'static [&'static str],
}

/// Tells the second run which test it is.
const INSIDE: &str = "HERMETIC_TEST_INSIDE";

/// Public addresses, by which stand-ins of the world are known there.
pub(crate) const PUBLIC: &str = "20.20.20.20";
pub(crate) const PUBLIC_6: &str = "2606:4700::20";

impl Namespace {
    /// The world at one address of each family, and a trap at every kind of address nobody may reach.
    pub(crate) const STAND_IN: Self = Self {
        addresses: &[
            PUBLIC,
            PUBLIC_6,
            "0.1.2.3",
            "10.1.2.3",
            "100.64.1.2",
            "100.100.100.200",
            "168.63.129.16",
            "169.254.1.2",
            "169.254.169.254",
            "172.16.1.2",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.2",
            "198.18.1.2",
            "198.51.100.1",
            "203.0.113.1",
            "64:ff9b::a01:203",
            "64:ff9b:1::a01:203",
            "2001::1",
            "2001:db8::1",
            "2002:a01:203::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
        ],
    };

    /// Whether we are there. If not, runs this one test again, there, and fails as it does.
    pub(crate) fn is_where(&self, test: &str) -> bool {
        if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
            return true;
        }
        let folder = tempfile::tempdir().unwrap();
        let resolver = folder.path().join("resolv.conf");
        let options = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
        fs::write(&resolver, options).unwrap();
        let mut command = self.unshared();
        if !command(&["true"])
            .status()
            .is_ok_and(|ended| ended.success())
        {
            eprintln!("SKIP: {test}: no network namespace can be had");
            return false;
        }
        let itself = std::env::current_exe().unwrap();
        let resolver = resolver.to_str().unwrap();
        let words = [
            resolver,
            itself.to_str().unwrap(),
            "--exact",
            test,
            "--nocapture",
        ];
        let ran = command(&words).env(INSIDE, test).output().unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        // What it had to leave out is said aloud here too.
        for line in said.lines().filter(|line| line.starts_with("SKIP")) {
            eprintln!("{line}");
        }
        false
    }

    fn unshared(&self) -> impl FnMut(&[&str]) -> Command {
        let set_up = format!(
            "ip link set lo up; for a in {}; do ip addr add $a dev lo nodad 2>/dev/null || ip addr add $a dev lo; \
             done; if [ -f \"$1\" ]; then mount --bind \"$1\" /etc/resolv.conf; shift; fi; exec \"$@\"",
            self.addresses.join(" ")
        );
        move |words: &[&str]| {
            let mut command = Command::new("unshare");
            if !rustix::process::geteuid().is_root() {
                command.arg("--map-root-user");
            }
            command
                .args(["--net", "--mount", "--", "sh", "-ec", &set_up, "sh"])
                .args(words);
            command
        }
    }
}
