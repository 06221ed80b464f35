use hermetic_sandbox::{NetworkMode, SystemView};
use hermetic_types::{ConversationKey, InstallationId, SandboxId};

use super::*;

fn spec() -> SandboxSpec {
    SandboxSpec {
        installation: InstallationId::random(),
        conversation: ConversationKey::new("alice"),
        id: SandboxId::random(),
        system: SystemView::Image("debian".to_owned()),
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Kept,
        lifeline: SandboxLifeline::Ledger,
        lifetime: Duration::from_secs(60),
    }
}

fn made(options: &ContainerOptions, spec: &SandboxSpec) -> ContainerCreateBody {
    let facts = EngineFacts {
        cpus: Some(2),
        may_size: false,
        maps_users: false,
        ..EngineFacts::default()
    };
    shape(options, spec, "debian", &ImageFacts::default(), &facts).unwrap()
}

fn host_of(options: &ContainerOptions, spec: &SandboxSpec) -> HostConfig {
    made(options, spec).host_config.unwrap()
}

#[test]
fn every_layer_is_asked_for() {
    let host = host_of(&ContainerOptions::default(), &spec());
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
    assert_eq!(host.cap_add, None);
    assert_eq!(
        host.security_opt,
        Some(vec!["no-new-privileges".to_owned()])
    );
    assert_eq!(host.privileged, None);
    assert_eq!(host.pids_limit, Some(256));
    assert_eq!(host.memory, Some(5120 << 20));
    assert_eq!(host.memory_swap, host.memory);
    assert_eq!(host.nano_cpus, Some(1_000_000_000));
    assert_eq!(host.binds, Some(Vec::new()));
    assert_eq!(host.log_config.unwrap().typ.as_deref(), Some("none"));
}

#[test]
fn only_what_keeps_no_files_removes_itself() {
    let mut spec = spec();
    assert_eq!(
        host_of(&ContainerOptions::default(), &spec).auto_remove,
        Some(false)
    );
    spec.persistence = SandboxPersistence::Ephemeral;
    assert_eq!(
        host_of(&ContainerOptions::default(), &spec).auto_remove,
        Some(true)
    );
}

#[test]
fn a_small_disk_is_memory_and_the_users_folder_takes_its_place() {
    let mut spec = spec();
    spec.persistence = SandboxPersistence::Ephemeral;
    spec.limits.disk_bytes = 64 << 20;
    let tmpfs =
        |options: &ContainerOptions, spec: &SandboxSpec| host_of(options, spec).tmpfs.unwrap();
    let workspace = &tmpfs(&ContainerOptions::default(), &spec)["/workspace"];
    assert!(workspace.contains("size=67108864"), "{workspace}");

    let volume = ContainerVolume::parse("/srv/work:/workspace").unwrap();
    let options = ContainerOptions {
        volumes: volume.into_iter().collect(),
        ..ContainerOptions::default()
    };
    assert!(!tmpfs(&options, &spec).contains_key("/workspace"));
    assert_eq!(
        host_of(&options, &spec).binds,
        Some(vec!["/srv/work:/workspace".to_owned()])
    );
}

#[test]
fn no_bound_is_larger_than_the_engine_and_none_is_zero() {
    assert_eq!(nano_cpus(64.0, Some(2)), 2_000_000_000);
    assert_eq!(nano_cpus(0.0, Some(2)), 10_000_000);
    assert_eq!(nano_cpus(f64::NAN, None), 10_000_000);
    let mut spec = spec();
    spec.limits.disk_bytes = 0;
    spec.limits.inodes = 0;
    for options in host_of(&ContainerOptions::default(), &spec)
        .tmpfs
        .unwrap()
        .values()
    {
        assert!(options.contains("size=4096,"), "{options}");
        assert!(options.contains("nr_inodes=64,"), "{options}");
    }
}

#[test]
fn labels_of_ours_cannot_be_taken_over() {
    let spec = spec();
    let labels = made(&ContainerOptions::default(), &spec).labels.unwrap();
    assert_eq!(labels["hermetic.installation"], spec.installation.as_str());
    assert_eq!(labels["hermetic.conversation"], "alice");
    let read = label::ContainerLabels::read(&labels, &spec.installation).unwrap();
    assert_eq!(read.id, spec.id);
    assert!(read.is_being_made());
    assert!(label::ContainerLabels::read(&labels, &InstallationId::random()).is_none());
}

#[test]
fn a_variable_with_a_hole_in_its_name_is_refused() {
    for name in ["", "A=B", "A\0"] {
        let mut spec = spec();
        spec.env.insert(name.to_owned(), "x".to_owned());
        let made = env(&ContainerOptions::default(), &spec, &ImageFacts::default());
        assert!(made.is_err(), "{name:?}");
    }
}

#[test]
fn a_user_of_its_own_has_a_home_and_a_name_unless_told_otherwise() {
    let mut options = ContainerOptions {
        user: ContainerUser::NeverRoot,
        ..ContainerOptions::default()
    };
    let env = |options: &ContainerOptions| made(options, &spec()).env.unwrap();
    let said = env(&options);
    for variable in ["HOME=/workspace", "USER=agent", "LOGNAME=agent"] {
        assert!(said.contains(&variable.to_owned()), "{said:?}");
    }
    options.env.insert("HOME".to_owned(), Secret::new("/tmp"));
    assert!(env(&options).contains(&"HOME=/tmp".to_owned()));
    assert!(env(&ContainerOptions::default()).is_empty());
}
