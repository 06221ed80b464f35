//! Which interfaces of a pod have another end.
//!
//! Routes alone do not tell: a program that binds its socket to an interface sends to whoever is at its
//! other end without any, and needs no right for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const UP: u32 = 1;

/// All besides loopback but those of which nobody outside is at the other end.
pub(super) fn open_ones() -> BTreeSet<String> {
    let listed = fs::read_to_string("/proc/net/dev");
    // Without this file nothing is known of interfaces, and doubt is one.
    named(listed.as_deref().unwrap_or("unknown:"))
        .filter(|name| !is_closed(&Path::new("/sys/class/net").join(name)))
        .map(str::to_owned)
        .collect()
}

fn named(listed: &str) -> impl Iterator<Item = &str> {
    let names = listed
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()));
    names.filter(|name| *name != "lo")
}

/// One that is down, which takes a right to change that nobody in a pod has; or a tap that no program of
/// the node holds. A `dummy` cannot be told from others in here, so it is none.
fn is_closed(interface: &Path) -> bool {
    let read = |name: &str| fs::read_to_string(interface.join(name)).ok();
    let flags = read("flags").and_then(|hex| {
        let digits = hex.trim().trim_start_matches("0x").to_owned();
        u32::from_str_radix(&digits, 16).ok()
    });
    let is_tap = interface.join("tun_flags").exists();
    let has_carrier = read("carrier").is_none_or(|carrier| carrier.trim() != "0");
    flags.is_some_and(|flags| flags & UP == 0) || is_tap && !has_carrier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_down_or_a_tap_that_nobody_holds_is_closed_and_doubt_is_open() {
        let net = tempfile::tempdir().unwrap();
        let interface = |name: &str, files: &[(&str, &str)]| {
            let folder = net.path().join(name);
            fs::create_dir(&folder).unwrap();
            for (file, text) in files {
                fs::write(folder.join(file), text).unwrap();
            }
            is_closed(&folder)
        };
        let (up, down) = (("flags", "0x1003\n"), ("flags", "0x80\n"));
        assert!(interface("sit0", &[down]));
        assert!(interface(
            "tap",
            &[up, ("tun_flags", "0x5002\n"), ("carrier", "0\n")]
        ));
        assert!(!interface(
            "held",
            &[up, ("tun_flags", "0x5002\n"), ("carrier", "1\n")]
        ));
        assert!(!interface("veth", &[up, ("carrier", "0\n")]));
        assert!(!interface("unknown", &[]));
    }

    #[test]
    fn loopback_is_no_interface() {
        let listed = "Inter-|   Receive\n face |bytes\n    lo:  0 0\n  eth0:1026 11\n";
        assert_eq!(named(listed).collect::<Vec<_>>(), ["eth0"]);
        assert_eq!(named("unknown:").collect::<Vec<_>>(), ["unknown"]);
    }
}
