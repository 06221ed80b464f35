//! The image a container is really made of: the asked one with our layer on top.
//!
//! Only the start takes an engine longer than unpacking an archive, and to a far one the program
//! has to travel too. So it is placed once, in a container that is never started, and that becomes
//! an image, kept by the engine for every later container of the same image and program. A file in
//! a layer is each container's own, which one on a shared volume would not be: locks on it would
//! reach from one conversation into another.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerConfig, ContainerCreateBody, HostConfig, ImageSummary};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, ListImagesOptionsBuilder,
    RemoveImageOptionsBuilder,
};
use bollard::{Docker, errors::Error};
use hermetic_sandbox::BackendError;
use hermetic_types::{SandboxId, Timestamp};
use sha2::{Digest, Sha256};

use crate::archive::ContainerUserKind;
use crate::birth;
use crate::death;
use crate::docker::DockerState;
use crate::image::{self, ImageFacts};
use crate::label;
use crate::trust;

const REPOSITORY: &str = "hermetic-warden";
/// Another number for another layout of what is placed.
const LAYOUT: &[u8] = b"1";

/// Younger ones may be another version's, at work at this moment.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// The name of the image with our layer, which is there when this returns.
pub(crate) async fn provide(
    host: &DockerState,
    docker: &Docker,
    asked: &str,
    picture: &ImageFacts,
    whose: ContainerUserKind,
) -> Result<String, BackendError> {
    let program = host.archives.digest(host.config.program);
    let authority = host.config.authority.as_deref();
    let name = name(program, &picture.id, whose, authority);
    if image::look(host, docker, &name).await?.is_some() {
        return Ok(name);
    }
    let mut seeds = host.preparing.lock().await;
    if image::look(host, docker, &name).await?.is_none() {
        let seed = SandboxId::random();
        // From before it exists until it is seen to be gone, whatever comes between.
        seeds.push(seed.clone());
        let made = make(host, docker, &seed, &name, asked, picture, whose).await;
        death::sweep(host, &mut seeds).await;
        made?;
        tracing::info!(image = asked, layered = name, "the warden is in place");
        sweep(host, docker, asked, picture).await;
    }
    Ok(name)
}

fn name(program: &[u8], base: &str, whose: ContainerUserKind, authority: Option<&str>) -> String {
    let whose: &[u8] = match whose {
        ContainerUserKind::Root => b"root",
        ContainerUserKind::SomebodyElse => b"somebody else",
    };
    let mut hash = Sha256::new();
    let authority = authority.unwrap_or_default().as_bytes();
    for part in [LAYOUT, program, whose, base.as_bytes(), authority] {
        // The length before each part, or two different lists of parts could read the same.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let tag: String = hash.finalize()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{REPOSITORY}:{tag}")
}

async fn make(
    host: &DockerState,
    docker: &Docker,
    seed: &SandboxId,
    name: &str,
    asked: &str,
    picture: &ImageFacts,
    whose: ContainerUserKind,
) -> Result<(), BackendError> {
    let made = async {
        let options = CreateContainerOptionsBuilder::new()
            .name(&label::name(seed))
            .build();
        let made = docker
            .create_container(Some(options), unborn(host, seed, picture))
            .await?;
        birth::place(host, docker, &made.id, whose).await?;
        if let Some(authority) = &host.config.authority {
            trust::extend(docker, &made.id, authority).await?;
        }
        commit(docker, &made.id, name, asked, picture).await
    };
    made.await
        .map_err(|error| host.engine.trouble("put the warden on the image", error))
}

/// Never started. Labelled like a sandbox, so that one whose maker died is found and removed.
fn unborn(host: &DockerState, seed: &SandboxId, picture: &ImageFacts) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(picture.id.clone()),
        // An image may have no command, with which no container is made.
        cmd: Some(vec![crate::archive::WARDEN.to_owned()]),
        labels: Some(label::of_seed(&host.config.installation, seed)),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            // Or the engine would make a disk for each volume of the image, and a folder for it
            // that stays in the layer.
            tmpfs: Some(HashMap::from_iter(
                picture
                    .volumes
                    .iter()
                    .map(|path| (path.clone(), String::new())),
            )),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

async fn commit(
    docker: &Docker,
    container: &str,
    name: &str,
    asked: &str,
    picture: &ImageFacts,
) -> Result<(), Error> {
    let (repository, tag) = name.split_once(':').unwrap_or((name, "latest"));
    let options = CommitContainerOptionsBuilder::new()
        .container(container)
        .repo(repository)
        .tag(tag)
        // It never ran, so that there is nothing to hold still; some engines refuse to pause what
        // does not run.
        .pause(false)
        .build();
    let config = ContainerConfig {
        labels: Some(label::of_layer(asked, &picture.id)),
        ..ContainerConfig::default()
    };
    docker.commit_container(options, config).await.map(drop)
}

/// Takes away what no container is made of and none will be: of another program, or of what this
/// image was before. An engine refuses to remove what is in use.
async fn sweep(host: &DockerState, docker: &Docker, asked: &str, picture: &ImageFacts) {
    let options = ListImagesOptionsBuilder::new()
        .filters(&label::layers())
        .build();
    let Ok(all) = docker.list_images(Some(options)).await else {
        return;
    };
    let now = host.config.clock.now();
    for old in all
        .iter()
        .filter(|one| is_stale(one, now, asked, &picture.id))
    {
        // What lies below is not ours, also when nobody else has a name for it any more.
        let options = RemoveImageOptionsBuilder::new().noprune(true).build();
        if let Err(error) = docker.remove_image(&old.id, Some(options), None).await {
            tracing::debug!(image = old.id, %error, "an older layer stays");
        }
    }
}

fn is_stale(image: &ImageSummary, now: Timestamp, asked: &str, base: &str) -> bool {
    let made = Timestamp::from_seconds(image.created);
    // All of its names: an image that somebody has given a name of his own is his.
    let is_ours = image.repo_tags.iter().all(|tag| {
        tag.strip_prefix(REPOSITORY)
            .is_some_and(|rest| rest.starts_with(':'))
    });
    let still_good = label::is_layer_of(&image.labels, asked, base);
    is_ours && !still_good && now.since(made) > STALE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_image_program_or_user_is_another_layer() {
        let one = name(b"program", "sha256:1", ContainerUserKind::Root, None);
        assert_eq!(
            one,
            name(b"program", "sha256:1", ContainerUserKind::Root, None)
        );
        for other in [
            name(b"programme", "sha256:1", ContainerUserKind::Root, None),
            name(b"program", "sha256:2", ContainerUserKind::Root, None),
            name(
                b"program",
                "sha256:1",
                ContainerUserKind::SomebodyElse,
                None,
            ),
            name(
                b"program",
                "sha256:1",
                ContainerUserKind::Root,
                Some("ours"),
            ),
        ] {
            assert_ne!(one, other);
        }
        assert!(one.starts_with("hermetic-warden:") && one.len() == 48);
    }

    #[test]
    fn only_what_is_old_ours_and_of_no_use_goes() {
        let image = |tags: &[&str], labels: HashMap<String, String>| ImageSummary {
            created: 0,
            repo_tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            labels,
            ..ImageSummary::default()
        };
        let tag = ["hermetic-warden:0"];
        let day = Timestamp::UNIX_EPOCH.plus(STALE + Duration::from_secs(1));
        let good = label::of_layer("debian", "sha256:1");
        let before = label::of_layer("debian", "sha256:0");
        let another = label::of_layer("python", "sha256:9");
        let stale = |image: &ImageSummary, now| is_stale(image, now, "debian", "sha256:1");
        assert!(stale(&image(&tag, before.clone()), day));
        assert!(!stale(
            &image(&tag, before.clone()),
            Timestamp::UNIX_EPOCH.plus(STALE)
        ));
        // A clock that was set back makes nothing old.
        let back = Timestamp::UNIX_EPOCH.minus(STALE * 2);
        assert!(!stale(&image(&tag, before.clone()), back));
        assert!(!stale(&image(&tag, good), day));
        assert!(!stale(&image(&tag, another), day));
        let named_by_a_person = ["hermetic-warden:0", "mine:1"];
        assert!(!stale(&image(&named_by_a_person, before), day));
    }
}
