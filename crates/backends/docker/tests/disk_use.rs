//! What containers have on the disk of this machine, for whoever bounds them together.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hermetic_sandbox::{Backend, LayerState, SandboxPersistence, SealLayer};

use crate::lab::{docker, sh, stories};

fn told(layer: &SealLayer) -> (&'static str, LayerState, String) {
    (layer.name, layer.state, layer.detail.clone())
}

stories! {
    async fn what_a_container_writes_is_counted_while_it_runs_and_when_it_rests(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let ids = [spec.id.clone()];
        assert!(lab.docker.disk_use(&ids).await.is_empty(), "it is not there yet");
        let sandbox = lab.create(&spec).await;
        let before = lab.docker.disk_use(&ids).await[&spec.id];
        sh(&sandbox, "head -c 20M /dev/zero >/workspace/large").await;
        let after = lab.docker.disk_use(&ids).await[&spec.id];
        assert!(after >= before + (20 << 20), "{before} {after}");
        lab.docker.stop(&spec.id).await.unwrap();
        let kept = lab.docker.disk_use(&ids).await[&spec.id];
        assert!(kept >= before + (20 << 20), "{before} {kept}");
        lab.docker.destroy(&spec.id).await.unwrap();
        assert!(lab.docker.disk_use(&ids).await.is_empty());
    }

    async fn what_bounds_memory_and_disk_is_told_without_a_trial(lab: &Lab) {
        let readiness = lab.docker.readiness().await;
        let bounds = |layer: &&SealLayer| layer.bounds_memory_or_disk();
        let tried: Vec<_> = readiness.layers.iter().filter(bounds).map(told).collect();
        let asked: Vec<_> = lab.docker.memory_and_disk().await.iter().map(told).collect();
        assert_eq!(asked, tried);
        assert_eq!(asked.len(), 2, "{asked:?}");
    }

    async fn it_counts_only_on_the_disk_that_it_takes_room_from(lab: &Lab) {
        let spec = lab.spec();
        let ids = [spec.id.clone()];
        lab.create(&spec).await;
        let root = docker(&["info", "--format"], &["{{.DockerRootDir}}"]).await;
        let root = Path::new(root.trim());
        let beside = lab.docker.disk_use_on(&ids, root).await;
        assert!(beside.contains_key(&spec.id), "beside {}", root.display());
        // A file system of its own on every machine.
        let elsewhere = Path::new("/proc");
        assert_ne!(fs::metadata(elsewhere).unwrap().dev(), fs::metadata(root).unwrap().dev());
        assert!(lab.docker.disk_use_on(&ids, elsewhere).await.is_empty());
        lab.docker.destroy(&spec.id).await.unwrap();
    }
}
