//! What a container is seen to use, by the engine's count.

use hermetic_sandbox::Backend;

use crate::lab::{sh, stories};

stories! {
    async fn what_a_container_uses_is_told_by_the_engine(lab: &Lab) {
        let spec = lab.spec();
        let ids = [spec.id.clone()];
        assert!(lab.docker.live_use(&ids).await.is_empty(), "it is not there yet");
        let sandbox = lab.create(&spec).await;
        let before = lab.docker.live_use(&ids).await[&spec.id];
        assert!(before.pids.unwrap() >= 1, "{before:?}");
        assert!(before.memory_bytes.unwrap() > 0, "{before:?}");
        sh(&sandbox, "timeout 1 sh -c 'while :; do :; done'").await;
        let after = lab.docker.live_use(&ids).await[&spec.id];
        assert!(after.cpu_time > before.cpu_time, "{before:?} {after:?}");
        // The engine of the lab writes a group for each container, so its processes are known by name.
        let processes = lab.docker.processes(&spec.id, 9).await.unwrap();
        assert!(processes.iter().any(|process| process.pid == 1), "{processes:?}");
        assert!(processes.len() <= 9 && processes[0].memory_bytes > 0, "{processes:?}");
        lab.docker.destroy(&spec.id).await.unwrap();
        assert_eq!(lab.docker.processes(&spec.id, 9).await, None, "it is gone");
        assert!(lab.docker.live_use(&ids).await.is_empty());
    }
}
