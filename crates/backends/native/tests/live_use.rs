//! What a sandbox is seen to use, from outside.

use std::time::Duration;

use hermetic_sandbox::Backend;
use hermetic_warden::client::RunEvent;
use hermetic_warden::protocol::RunRequest;

use crate::lab::{sh, stories};

stories! {
    async fn what_a_sandbox_uses_is_seen_from_outside(lab: &Lab) {
        let spec = lab.spec();
        let ids = [spec.id.clone()];
        assert!(lab.native.live_use(&ids).await.is_empty(), "it is not there yet");
        let warden = lab.create(&spec).await.unwrap();
        let mut running = warden.run(RunRequest::new(["sleep", "300"])).await.unwrap();
        while !matches!(running.next().await.unwrap(), Some(RunEvent::Started { .. })) {}
        let before = lab.native.live_use(&ids).await[&spec.id];
        assert!(before.pids.unwrap() >= 2, "{before:?}");
        assert!(before.memory_bytes.unwrap() > 0, "{before:?}");
        // A second of work shows, whoever did it and although it has ended.
        sh(&warden, "python3 -c 'import time\nwhile time.process_time() < 1: pass'").await;
        let after = lab.native.live_use(&ids).await[&spec.id];
        let worked = after.cpu_time.unwrap() - before.cpu_time.unwrap();
        assert!(worked >= Duration::from_millis(900), "{worked:?}");
        let processes = lab.native.processes(&spec.id, 10).await.unwrap();
        let sleeps = processes.iter().find(|one| one.name == "sleep");
        assert!(sleeps.is_some_and(|one| one.memory_bytes > 0), "{processes:?}");
        assert!(processes.iter().any(|one| one.pid == 1), "numbers are those inside: {processes:?}");
        assert_eq!(lab.native.processes(&spec.id, 1).await.unwrap().len(), 1);
        lab.native.destroy(&spec.id).await.unwrap();
        assert!(lab.native.live_use(&ids).await.is_empty());
        assert_eq!(lab.native.processes(&spec.id, 10).await, None);
    }
}
