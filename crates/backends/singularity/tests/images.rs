//! Images: a SIF, an archive, a registry; fetched once, whole or not at all.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use hermetic_sandbox::{Backend, SandboxSpec, SystemView};
use hermetic_singularity::{ApptainerRuntime, BuildListener, BuildProgress, SingularityBackend};

use crate::lab::{Lab, greet, processes_of, sh, stories, until};
use crate::registry::{Layer, Parts, Registry, root};

const LOOK: &str = "cat /etc/marker; id -u; echo ${PLANTED-nothing}";
const SEEN: &str = "from-the-image\n1000\nnothing\n";

/// A backend whose builds use nothing of the user's own, and what they said.
fn builder(lab: &Lab) -> (SingularityBackend, Arc<Mutex<Vec<BuildProgress>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&heard);
    let cache = lab.folder.path().join("own-cache");
    let look = move |name: &str| match name {
        "APPTAINER_CACHEDIR" | "SINGULARITY_CACHEDIR" | "HOME" => Some(OsString::from(&cache)),
        _ => std::env::var_os(name),
    };
    let backend = lab.with(|config| {
        config.runtime = ApptainerRuntime::find(&look);
        config.tell = BuildListener::new(move |said| telling.lock().unwrap().push(said.clone()));
    });
    (backend, heard)
}

fn wanting(lab: &Lab, image: &str) -> SandboxSpec {
    SandboxSpec {
        system: SystemView::Image(image.to_owned()),
        ..lab.spec()
    }
}

/// What lies in the cache of images: whole ones and halves.
fn cached(lab: &Lab) -> Vec<String> {
    let entries = std::fs::read_dir(lab.folder.path().join("images"));
    let names = entries.into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

async fn looks_right(backend: &SingularityBackend, spec: &SandboxSpec) {
    let sandbox = greet(spec, backend.create(spec).await.unwrap()).await;
    assert_eq!(sh(&sandbox, LOOK).await, SEEN);
    backend.destroy(&spec.id).await.unwrap();
}

stories! {
    async fn a_sif_is_an_image(lab: &Lab) {
        let file = lab.folder.path().join("image.sif");
        if let Some(why) = pack(&root(lab.folder.path()), &file) {
            return eprintln!("SKIP: a_sif_is_an_image: {why}");
        }
        let before = std::fs::read(&file).unwrap();
        let spec = wanting(lab, file.to_str().unwrap());
        looks_right(&lab.backend, &spec).await;
        assert!(std::fs::read(&file).unwrap() == before, "the image was changed");
    }

    async fn an_archive_is_unpacked_once_by_two_who_want_it_at_once(lab: &Lab) {
        let archive = Parts::of(&root(lab.folder.path())).archive(lab.folder.path());
        let name = format!("oci-archive:{}", archive.display());
        let (backend, heard) = builder(lab);
        let (one, two) = (wanting(lab, &name), wanting(lab, &name));
        tokio::join!(looks_right(&backend, &one), looks_right(&backend, &two));
        {
            let heard = heard.lock().unwrap();
            assert_eq!(heard.iter().filter(|said| said.done).count(), 1, "{heard:?}");
            assert!(heard.len() > 1 && heard.iter().all(|said| said.image == name), "{heard:?}");
        }
        // A later process of the same home starts from what is there.
        std::fs::remove_file(archive).unwrap();
        looks_right(&lab.reopened(), &one).await;
        assert_eq!(cached(lab).len(), 1);
    }

    async fn a_registry_is_asked_once(lab: &Lab) {
        let registry = Registry::open(Parts::of(&root(lab.folder.path()))).await;
        let (backend, heard) = builder(lab);
        let spec = wanting(lab, &registry.name);
        looks_right(&backend, &spec).await;
        let asked = registry.count("/manifests/");
        assert!(asked > 0 && heard.lock().unwrap().iter().any(|said| said.done));
        looks_right(&backend, &spec).await;
        assert_eq!(registry.count("/manifests/"), asked, "it was there already");
    }

    async fn what_a_registry_does_not_give_whole_leaves_nothing(lab: &Lab) {
        let registry = Registry::open(Parts::of(&root(lab.folder.path()))).await;
        let (backend, _) = builder(lab);
        let missing = registry.name.replace("image:1", "image:none");
        let mut names = vec![(missing, Layer::Whole)];
        names.extend([Layer::Cut, Layer::Changed].map(|how| (registry.name.clone(), how)));
        for (name, how) in names {
            registry.gives(how);
            let error = backend.create(&wanting(lab, &name)).await.unwrap_err();
            assert!(error.to_string().contains(&name), "{error}");
            assert!(error.to_string().contains("cannot be had"), "{error}");
            until("nothing is left", async || cached(lab).is_empty()).await;
        }
        // Mended, it is had.
        registry.gives(Layer::Whole);
        looks_right(&backend, &wanting(lab, &registry.name)).await;
    }

    async fn a_build_that_is_given_up_ends_and_leaves_nothing(lab: &Lab) {
        let registry = Registry::open(Parts::of(&root(lab.folder.path()))).await;
        registry.gives(Layer::Stalled);
        let (backend, _) = builder(lab);
        let spec = wanting(lab, &registry.name);
        {
            let mut making = backend.create(&spec);
            let under_way = until("the layer is under way", async || registry.is_at_the_layer());
            tokio::select! {
                made = &mut making => panic!("it cannot be had yet: {made:?}"),
                () = under_way => {}
            }
            assert!(!processes_of(&registry.name).is_empty());
        }
        until("the builder is gone", async || processes_of(&registry.name).is_empty()).await;
        until("its half is gone", async || cached(lab).is_empty()).await;
    }

    async fn half_an_image_of_a_killed_gateway_is_cleared_away(lab: &Lab) {
        let images = lab.folder.path().join("images");
        // Nobody has this number: it is beyond what Linux gives.
        let half = images.join("0123.half-4194305-0");
        std::fs::create_dir_all(half.join("usr")).unwrap();
        let mut orphan = Command::new("bash")
            .args(["-c", "read line", "build"])
            .arg(half.join("root"))
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        until("the builder goes on without its gateway", async || {
            processes_of(half.to_str().unwrap()).contains(&orphan.id().cast_signed())
        }).await;
        drop(lab.reopened());
        until("its half is gone", async || cached(lab).is_empty()).await;
        assert!(processes_of(half.to_str().unwrap()).is_empty());
        // A child of ours, and seen to its end by the sweep already.
        let _ = orphan.wait();
    }
}

/// Makes a SIF, or says why there can be none here.
fn pack(root: &Path, file: &Path) -> Option<String> {
    let fuse = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    let mounts = Command::new("squashfuse").arg("--help").output();
    if !rustix::process::getuid().is_root() && (fuse.is_err() || mounts.is_err()) {
        return Some("a plain user needs squashfuse and /dev/fuse for one".to_owned());
    }
    let runtime = ["apptainer", "singularity"].iter().find_map(|name| {
        let tried = Command::new(name).arg("--version").output();
        tried.is_ok().then_some(*name)
    })?;
    let built = Command::new(runtime)
        .args(["--silent", "build", "--force"])
        .args([file, root])
        .env("APPTAINER_CACHEDIR", root.with_extension("cache"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    let lacking = said.contains("mksquashfs");
    assert!(built.status.success() || lacking, "{said}");
    (!built.status.success()).then(|| "no mksquashfs; `cargo xtask test` provides it".to_owned())
}
