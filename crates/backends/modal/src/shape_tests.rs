use std::collections::BTreeMap;

use hermetic_sandbox::{HostMount, MountMode, NetworkMode, SandboxPersistence};
use hermetic_types::{ConversationKey, InstallationId, SandboxId};

use super::*;

fn spec() -> SandboxSpec {
    SandboxSpec {
        installation: InstallationId::random(),
        conversation: ConversationKey::new("story"),
        id: SandboxId::random(),
        system: SystemView::Image("debian:12".to_owned()),
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(3600),
    }
}

fn made(spec: &SandboxSpec, outbound: &OutboundAccess) -> Sandbox {
    definition(spec, "im-1".to_owned(), "s1", b"warden", outbound)
}

#[test]
fn a_sandbox_is_sealed_bounded_and_mortal() {
    let made = made(&spec(), &OutboundAccess::Nothing);
    let access = made.network_access.unwrap();
    assert_eq!(access.network_access_type(), NetworkAccessType::Blocked);
    let resources = made.resources.unwrap();
    assert_eq!((resources.milli_cpu, resources.milli_cpu_max), (1000, 1000));
    assert_eq!((resources.memory_mb, resources.memory_mb_max), (5120, 5120));
    assert_eq!(made.timeout_secs, 86_400);
    assert_eq!(made.idle_timeout_secs, Some(3720));
}

#[test]
fn whatever_the_lifetime_modal_ends_it() {
    for seconds in [0, 1, 60, 3600, 86_400, 10 << 30] {
        let mut spec = spec();
        spec.lifetime = Duration::from_secs(seconds);
        let made = made(&spec, &OutboundAccess::Nothing);
        assert!((1..=86_400).contains(&made.timeout_secs), "{seconds}");
        assert!(made.idle_timeout_secs.is_some_and(|idle| idle > 0));
    }
}

#[test]
fn a_tied_one_waits_a_minute_for_its_creator() {
    let mut spec = spec();
    spec.lifeline = SandboxLifeline::Creator;
    let made = made(&spec, &OutboundAccess::Nothing);
    assert!(made.entrypoint_args[2].contains("--lifetime 60 --tied"));
}

#[test]
fn networks_and_names_are_told_apart_and_nothing_else_passes() {
    let texts = ["192.0.2.0/24", "2001:db8::/32", "pypi.org", "*.example.org"];
    let outbound = OutboundAccess::parse(&texts.map(str::to_owned)).unwrap();
    let access = made(&spec(), &outbound).network_access.unwrap();
    assert_eq!(access.network_access_type(), NetworkAccessType::Allowlist);
    assert_eq!(access.allowed_cidrs, texts[..2]);
    assert_eq!(access.allowed_domains, texts[2..]);
    for bad in [
        "",
        "*",
        "localhost",
        "192.0.2.1",
        "192.0.2.0/33",
        "a b.org",
        "https://a.org",
        "a..b",
    ] {
        assert!(OutboundAccess::parse(&[bad.to_owned()]).is_err(), "{bad}");
    }
    assert_eq!(OutboundAccess::parse(&[]), Ok(OutboundAccess::Nothing));
}

#[test]
fn what_modal_cannot_have_is_refused() {
    let mut mounted = spec();
    mounted.mounts = vec![HostMount {
        source: "/srv".into(),
        target: "/srv".into(),
        mode: MountMode::ReadOnly,
    }];
    let mut hosted = spec();
    hosted.system = SystemView::Host;
    let mut odd = spec();
    odd.env = BTreeMap::from([("A=B".to_owned(), String::new())]);
    for spec in [mounted, hosted, odd] {
        assert!(matches!(check(&spec), Err(BackendError::Refused { .. })));
    }
    assert_eq!(check(&spec()).unwrap(), "debian:12");
}
