//! Beginning, ending, and what comes between.

use std::time::Duration;

use hermetic_sandbox::{Backend, SandboxLifeline, SystemView};
use hermetic_singularity::ApptainerRuntime;
use hermetic_types::SandboxId;

use crate::lab::{greet, processes_of, sh, stories, until};

stories! {
    async fn one_that_nobody_comes_back_to_ends_itself(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifetime = Duration::from_secs(1);
        let sandbox = lab.create(&spec).await;
        sandbox.warden().close();
        drop(sandbox);
        let name = spec.id.to_string();
        until("the instance is gone", async || processes_of(&name).is_empty()).await;
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn a_tied_one_goes_with_its_backend(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let other = lab.reopened();
        let link = other.create(&spec).await.unwrap();
        let name = spec.id.to_string();
        assert!(!processes_of(&name).is_empty());
        drop((link, other));
        until("the instance is gone", async || processes_of(&name).is_empty()).await;
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn an_image_that_is_not_there_is_named(lab: &Lab) {
        let mut spec = lab.spec();
        spec.system = SystemView::Image("/nowhere/at/all.sif".to_owned());
        let error = lab.backend.create(&spec).await.unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all.sif"), "{error}");
        spec.system = SystemView::Image("oci-archive:/nowhere/at/all.tar".to_owned());
        let error = lab.backend.create(&spec).await.unwrap_err();
        assert!(error.to_string().contains("cannot be had"), "{error}");
        lab.backend.destroy(&SandboxId::random()).await.unwrap();
    }

    /// Where Apptainer is not called by its own name; older runtimes have no other.
    async fn a_runtime_that_is_called_singularity_will_do(lab: &Lab) {
        let own = lab.folder.path().join("bin");
        std::fs::create_dir(&own).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .flat_map(|folder| ["apptainer", "singularity"].map(|name| folder.join(name)))
            .find(|place| place.is_file())
            .expect("there is a runtime");
        std::os::unix::fs::symlink(program, own.join("singularity")).unwrap();
        let backend = lab.with(|config| {
            config.runtime = ApptainerRuntime::among(&[own], &|name| std::env::var_os(name));
        });
        assert_eq!(format!("{backend:?}"), "SingularityBackend(\"singularity\")");
        let spec = lab.spec();
        let sandbox = greet(&spec, backend.create(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "env | grep -ci 'singularity\\|apptainer'; pwd").await, "0\n/workspace\n");
        backend.destroy(&spec.id).await.unwrap();
    }

    async fn readiness_tells_what_was_tried(lab: &Lab) {
        let readiness = lab.backend.readiness().await;
        assert!(readiness.missing().is_none(), "{readiness:?}");
        for name in ["runtime", "image", "instance", "seccomp", "memory limit"] {
            assert!(readiness.layers.iter().any(|layer| layer.name == name), "{name}");
        }
    }
}
