//! Create, find again, stop, resume, destroy.

use std::time::Duration;

use hermetic_native::{NativeBackend, NativeConfig, RequiredLayer};
use hermetic_sandbox::{
    Backend, BackendError, FoundState, HostMount, LayerState, MountMode, SandboxLifeline,
    SandboxPersistence,
};
use hermetic_types::SandboxId;

use crate::lab::{Lab, finished, greet, holders, open, sh, stories, until};

stories! {
    async fn this_host_can_hold_a_sandbox(lab: &Lab) {
        let readiness = lab.native.readiness().await;
        for layer in &readiness.layers {
            println!("{:16} {:?}: {} {:?}", layer.name, layer.state, layer.detail, layer.remedy);
            assert!(layer.state == LayerState::Active || layer.remedy.is_some());
        }
        assert!(readiness.missing().is_none());
        assert_eq!(lab.native.list().await.unwrap(), []);
    }

    async fn a_sandbox_is_listed_connected_and_destroyed_twice(lab: &Lab) {
        let spec = lab.spec();
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "echo kept > /workspace/f").await;
        drop(warden);
        let found = lab.native.list().await.unwrap();
        assert_eq!((found.len(), &found[0].id, found[0].state), (1, &spec.id, FoundState::Running));
        assert_eq!(found[0].conversation.as_ref(), Some(&spec.conversation));
        let again = greet(lab.native.connect(&spec.id).await.unwrap()).await;
        assert_eq!(sh(&again, "cat /workspace/f").await.text, "kept\n");
        lab.native.destroy(&spec.id).await.unwrap();
        lab.native.destroy(&spec.id).await.unwrap();
        lab.native.destroy(&SandboxId::random()).await.unwrap();
        assert_eq!(lab.native.list().await.unwrap(), []);
        assert!(matches!(lab.native.connect(&spec.id).await, Err(BackendError::NoSuchSandbox { .. })));
    }

    async fn a_kept_sandbox_resumes_with_its_files(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "echo a > /workspace/f; echo b > ~/g; sleep 100 & ").await;
        lab.native.stop(&spec.id).await.unwrap();
        lab.native.stop(&spec.id).await.unwrap();
        assert_eq!(lab.native.list().await.unwrap()[0].state, FoundState::Stopped);
        let warden = greet(lab.native.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&warden, "cat /workspace/f ~/g; id -u; touch /workspace/more; pgrep sleep").await.text, "a\nb\n1000\n");
        lab.native.destroy(&spec.id).await.unwrap();
        assert!(matches!(lab.native.resume(&spec).await, Err(BackendError::NoSuchSandbox { .. })));
    }

    /// A power cut leaves the names of files that were made a moment before, and nothing in them.
    async fn a_kept_sandbox_whose_record_is_lost_resumes_with_its_files(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "echo a > /workspace/f; echo b > ~/g").await;
        lab.native.stop(&spec.id).await.unwrap();
        let record = lab.state.path().join("sandboxes").join(spec.id.as_str()).join("sandbox.json");
        let whole = std::fs::read_to_string(&record).unwrap();
        let first = whole.lines().next().unwrap().len() + 1;
        // All of it, the half of it, and only the line of its life.
        for left in [0, first / 2, first] {
            std::fs::write(&record, &whole[..left]).unwrap();
            lab.native.stop(&spec.id).await.unwrap();
            let warden = greet(lab.native.resume(&spec).await.unwrap()).await;
            assert_eq!(sh(&warden, "cat /workspace/f ~/g; id -u").await.text, "a\nb\n1000\n", "{left}");
            lab.native.stop(&spec.id).await.unwrap();
            assert_eq!(lab.native.list().await.unwrap()[0].state, FoundState::Stopped);
        }
        // With something alive in it nobody knows what to end first.
        let warden = greet(lab.native.resume(&spec).await.unwrap()).await;
        let whole = std::fs::read(&record).unwrap();
        std::fs::write(&record, "").unwrap();
        assert!(matches!(lab.native.resume(&spec).await, Err(BackendError::Refused { .. })));
        assert!(lab.native.stop(&spec.id).await.is_err());
        assert_eq!(sh(&warden, "cat /workspace/f").await.text, "a\n");
        std::fs::write(&record, whole).unwrap();
        lab.native.destroy(&spec.id).await.unwrap();
        assert!(matches!(lab.native.resume(&spec).await, Err(BackendError::NoSuchSandbox { .. })));
    }

    /// Whoever went away is seen out by the sandbox's name, which by then is the next one's.
    async fn a_kept_sandbox_outlives_whoever_asked_for_it_and_went_away(lab: &Lab) {
        /// Round trips of some milliseconds in which a latecomer could end the life.
        const COMMANDS: usize = 5;
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "echo kept > /workspace/f").await;
        lab.native.stop(&spec.id).await.unwrap();
        for wait in 0..12 {
            // Given up at any step, or had in time.
            let asked = lab.native.resume(&spec);
            let _ = tokio::time::timeout(Duration::from_millis(wait), asked).await;
            let warden = greet(finished(lab.native.resume(&spec)).await.unwrap()).await;
            for _ in 0..COMMANDS {
                assert_eq!(sh(&warden, "cat /workspace/f").await.text, "kept\n", "after {wait} ms");
            }
            lab.native.stop(&spec.id).await.unwrap();
            assert_eq!(lab.native.list().await.unwrap()[0].state, FoundState::Stopped);
        }
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn destroy_ends_what_hides_from_it(lab: &Lab) {
        let spec = lab.spec();
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' &) ; for i in 1 2 3; do (setsid sleep 1000 &) & done").await;
        assert!(!holders(lab.state.path()).is_empty());
        finished(lab.native.destroy(&spec.id)).await.unwrap();
        assert_eq!(holders(lab.state.path()), Vec::<u32>::new());
    }

    async fn one_that_nobody_comes_back_to_ends_itself(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifetime = Duration::from_secs(1);
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "(setsid sleep 1000 &)").await;
        assert!(!holders(lab.state.path()).is_empty());
        warden.close();
        drop(warden);
        // Its memory goes a moment before its number does.
        let ended = async {
            while lab.native.list().await.unwrap()[0].state == FoundState::Running {
                tokio::task::yield_now().await;
            }
        };
        finished(ended).await;
        assert_eq!(holders(lab.state.path()), Vec::<u32>::new());
        assert_eq!(lab.native.list().await.unwrap()[0].state, FoundState::Broken);
    }

    async fn what_the_operator_requires_holds_or_nothing_runs(lab: &Lab) {
        let strict = NativeBackend::open(NativeConfig {
            state: lab.state.path().join("strict"),
            installation: lab.installation.clone(),
            program: hermetic_embedded::WARDEN,
            require: vec![RequiredLayer::CgroupLimits],
            authority: None,
            total: hermetic_native::TotalLimits::default(),
        })
        .unwrap();
        let layers = lab.native.readiness().await.layers;
        let by_cgroups = layers
            .iter()
            .filter(|layer| layer.name.ends_with("limit") && layer.name != "disk limit")
            .all(|layer| layer.state == LayerState::Active);
        let spec = lab.spec();
        match strict.create(&spec).await {
            Ok(_) => assert!(by_cgroups, "a weaker limit was taken"),
            Err(BackendError::Unavailable { remedy, .. }) => {
                assert!(!by_cgroups && !remedy.is_empty());
            }
            Err(other) => panic!("{other}"),
        }
        strict.destroy(&spec.id).await.unwrap();
        assert_eq!(strict.list().await.unwrap(), []);
    }

    async fn an_id_is_used_once(lab: &Lab) {
        let spec = lab.spec();
        let _warden = lab.create(&spec).await.unwrap();
        assert!(matches!(lab.native.create(&spec).await, Err(BackendError::Refused { .. })));
        assert_eq!(lab.native.list().await.unwrap()[0].state, FoundState::Running);
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn another_installation_is_not_ours(lab: &Lab) {
        let other = Lab::open();
        let (ours, theirs) = (lab.spec(), other.spec());
        let _one = lab.create(&ours).await.unwrap();
        let two = other.create(&theirs).await.unwrap();
        assert!(matches!(lab.native.create(&theirs).await, Err(BackendError::Refused { .. })));
        lab.native.destroy(&theirs.id).await.unwrap();
        assert_eq!(lab.native.list().await.unwrap().len(), 1);
        assert_eq!(sh(&two, "echo still here").await.text, "still here\n");
        other.native.destroy(&theirs.id).await.unwrap();
        lab.native.destroy(&ours.id).await.unwrap();
    }

    async fn a_second_gateway_finds_what_the_first_left(lab: &Lab) {
        let spec = lab.spec();
        drop(lab.create(&spec).await.unwrap());
        let second = open(lab.state.path(), &lab.installation);
        let warden = greet(second.connect(&spec.id).await.unwrap()).await;
        assert_eq!(sh(&warden, "echo found").await.text, "found\n");
        second.destroy(&spec.id).await.unwrap();
        until("it is gone for both", || holders(lab.state.path()).is_empty()).await;
    }

    async fn a_tied_sandbox_dies_with_its_link(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let warden = lab.create(&spec).await.unwrap();
        assert_eq!(sh(&warden, "echo here").await.text, "here\n");
        warden.close();
        drop(warden);
        until("it is gone", || holders(lab.state.path()).is_empty()).await;
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn a_create_that_nobody_waits_for_leaves_nothing(lab: &Lab) {
        for wait in 0..8 {
            let spec = lab.spec();
            let _ = tokio::time::timeout(Duration::from_millis(wait * 2), lab.native.create(&spec)).await;
            let _ = spec;
        }
        let left = async {
            loop {
                let found = lab.native.list().await.unwrap();
                // Those that made it in time are alive; the abandoned vanish.
                if found.iter().all(|found| found.state == FoundState::Running) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        for found in finished(left).await {
            lab.native.destroy(&found.id).await.unwrap();
        }
    }

    async fn mounts_are_shown_as_asked(lab: &Lab) {
        let shown = tempfile::tempdir().unwrap();
        std::fs::write(shown.path().join("f"), "outside\n").unwrap();
        std::os::unix::fs::chown(shown.path(), None, None).unwrap();
        std::fs::set_permissions(shown.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let mut spec = lab.spec();
        let mount = |target: &str, mode| HostMount { source: shown.path().to_owned(), target: target.into(), mode };
        spec.mounts = vec![mount("/data/in", MountMode::ReadOnly), mount("/workspace/out", MountMode::ReadWrite)];
        let said = lab.run_in(&spec, "cat /data/in/f; (echo x > /data/in/g) 2>/dev/null && echo WROTE; echo back > /workspace/out/g; cp /bin/sh /workspace/out/s; chmod 4755 /workspace/out/s; grep -c 'nosuid,nodev.*' /proc/self/mountinfo >/dev/null && echo ok").await;
        assert_eq!(said.text, "outside\nok\n");
        assert_eq!(std::fs::read_to_string(shown.path().join("g")).unwrap(), "back\n");
    }

    async fn mounts_that_would_hand_over_the_host_are_refused(lab: &Lab) {
        let link = lab.state.path().join("link");
        std::os::unix::fs::symlink("/", &link).unwrap();
        let sources = [
            "/".into(), "/proc".into(), "/dev".into(), "/sys/fs/cgroup".into(), link,
            lab.state.path().to_owned(), lab.state.path().join("sandboxes"), std::env::temp_dir(),
        ];
        for source in sources {
            let mut spec = lab.spec();
            spec.mounts = vec![HostMount { source: source.clone(), target: "/data".into(), mode: MountMode::ReadOnly }];
            let refused = lab.native.create(&spec).await;
            assert!(matches!(refused, Err(BackendError::Refused { .. })), "{}", source.display());
        }
        for target in ["/", "/proc/x", "/etc", "/usr/bin", "relative", "/a/../../b", "/dev/x"] {
            let mut spec = lab.spec();
            spec.mounts = vec![HostMount { source: "/usr/share".into(), target: target.into(), mode: MountMode::ReadOnly }];
            let refused = lab.native.create(&spec).await;
            assert!(matches!(refused, Err(BackendError::Refused { .. })), "{target}");
        }
        assert_eq!(lab.native.list().await.unwrap(), []);
    }

    async fn a_link_planted_in_the_workspace_is_not_a_mount_point(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "ln -s /etc /workspace/out; ln -s ../../../../etc /workspace/up").await;
        lab.native.stop(&spec.id).await.unwrap();
        for target in ["/workspace/out", "/workspace/out/deep", "/workspace/up"] {
            spec.mounts = vec![HostMount { source: "/usr/share".into(), target: target.into(), mode: MountMode::ReadOnly }];
            assert!(lab.native.resume(&spec).await.is_err(), "{target}");
        }
        spec.mounts.clear();
        let warden = greet(lab.native.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&warden, "readlink /workspace/out").await.text, "/etc\n");
        lab.native.destroy(&spec.id).await.unwrap();
    }
}
