//! From an image's name to the id Modal has for it, built where it is not yet.

use std::collections::BTreeMap;

use hermetic_sandbox::BackendError;
use tokio::time::{Duration, sleep, timeout};
use tonic::Status;

use crate::modal::ModalState;
use crate::patience::{CallTimeouts, RetryAttempts};
use crate::trouble::{one_line, trouble};
use crate::wire::{
    EnvironmentGetOrCreateRequest, GenericResult, GenericStatus, Image, ImageGetOrCreateRequest,
    ImageJoinStreamingRequest, Namespace, ObjectCreation,
};

/// Ids by name.
pub(crate) type ImageIds = BTreeMap<String, String>;

/// An id of Modal's own starts so, and is used as it is.
const ID: &str = "im-";

/// A build that says nothing for so long is asked about again.
const JOIN: f32 = 55.0;
/// Between two answers that end at once.
const NEXT_STREAM: Duration = Duration::from_millis(500);
/// Longer than [`JOIN`], at whose end Modal answers in any case: more silence is a broken link.
const BUILD_SILENCE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a build may take at all.
const BUILD: Duration = Duration::from_secs(30 * 60);

pub(crate) async fn provide(host: &ModalState, name: &str) -> Result<String, BackendError> {
    if name.starts_with(ID) {
        return Ok(name.to_owned());
    }
    let commands = dockerfile(name)?;
    // Held over the build: who wants the same image waits for it.
    let mut images = host.images.lock().await;
    if let Some(id) = images.get(name) {
        return Ok(id.clone());
    }
    let built = build(host, name, commands).await?;
    images.insert(name.to_owned(), built.clone());
    Ok(built)
}

/// After a sandbox was not made from it.
pub(crate) async fn forget(host: &ModalState, name: &str) {
    host.images.lock().await.remove(name);
}

async fn build(
    host: &ModalState,
    name: &str,
    commands: Vec<String>,
) -> Result<String, BackendError> {
    let step = format!("build the image {name}");
    let failed = |status: Status| trouble(&step, &status);
    let app = host
        .app(ObjectCreation::CreateIfMissing)
        .await
        .map_err(failed)?;
    let question = ImageGetOrCreateRequest {
        image: Some(Image {
            dockerfile_commands: commands,
        }),
        app_id: app.unwrap_or_default(),
        namespace: Namespace::Workspace.into(),
        builder_version: builder(host).await.map_err(failed)?,
    };
    let answer = host
        .control
        .ask(question, CallTimeouts::LONG)
        .await
        .map_err(failed)?;
    let result = match answer.result.filter(GenericResult::is_over) {
        Some(result) => result,
        None => {
            tracing::info!(image = name, id = %answer.image_id, "Modal builds the image");
            let built = timeout(BUILD, join(host, &answer.image_id)).await;
            let late = |_| {
                Err(Status::deadline_exceeded(
                    "the build takes more than half an hour",
                ))
            };
            built.unwrap_or_else(late).map_err(failed)?
        }
    };
    match result.status() {
        GenericStatus::Success => Ok(answer.image_id),
        _ => Err(BackendError::Unavailable {
            what: format!(
                "the image {name} cannot be built at Modal: {}",
                match one_line(&result.exception) {
                    why if why.is_empty() => format!("{:?}", result.status()),
                    why => why,
                }
            ),
            remedy: format!(
                "check its name, and see `modal image logs {}`",
                answer.image_id
            ),
        }),
    }
}

/// Follows a build to its end, over as many streams as that takes.
async fn join(host: &ModalState, image: &str) -> Result<GenericResult, Status> {
    let mut last_entry_id = String::new();
    let mut attempts = RetryAttempts::within(BUILD);
    loop {
        let question = ImageJoinStreamingRequest {
            image_id: image.to_owned(),
            timeout: JOIN,
            last_entry_id: last_entry_id.clone(),
        };
        let mut news = match host.control.listen(question, CallTimeouts::LONG).await {
            Ok(news) => news,
            Err(status) => {
                attempts.after(status).await?;
                continue;
            }
        };
        loop {
            let silent = || Status::deadline_exceeded("the build says nothing");
            let next = timeout(BUILD_SILENCE_TIMEOUT, news.message()).await;
            match next.unwrap_or_else(|_| Err(silent())) {
                Ok(Some(piece)) => {
                    if let Some(result) = piece.result.filter(GenericResult::is_over) {
                        return Ok(result);
                    }
                    if !piece.entry_id.is_empty() {
                        last_entry_id = piece.entry_id;
                    }
                    for log in piece.task_logs {
                        tracing::debug!(image, "{}", one_line(&log.data));
                    }
                }
                // Held open for most of a minute; one that ends at once is not asked for at full speed.
                Ok(None) => {
                    sleep(NEXT_STREAM).await;
                    break;
                }
                Err(status) => {
                    attempts.after(status).await?;
                    break;
                }
            }
        }
    }
}

/// Which of its builders Modal is to use: the environment's.
async fn builder(host: &ModalState) -> Result<String, Status> {
    let question = EnvironmentGetOrCreateRequest {
        deployment_name: host.control.environment().to_owned(),
        object_creation_type: ObjectCreation::LookUp.into(),
    };
    let answer = host.control.ask(question, CallTimeouts::QUICK).await?;
    let settings = answer.metadata.and_then(|metadata| metadata.settings);
    Ok(settings.unwrap_or_default().image_builder_version)
}

/// The name as it is, with Python added where a bare distribution has none, as Hermes users know it.
fn dockerfile(name: &str) -> Result<Vec<String>, BackendError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./:@_-".contains(c);
    // It becomes a line of a build file, where a line end would be another instruction.
    if name.is_empty() || name.len() > 512 || !name.chars().all(plain) {
        return Err(BackendError::Refused {
            what: format!("the image {name:?}"),
            why: "it is no image name".to_owned(),
        });
    }
    let mut commands = vec![format!("FROM {name}")];
    let repository = name.rsplit('/').next().unwrap_or_default();
    let distribution = repository.split([':', '@']).next().unwrap_or_default();
    if matches!(distribution, "debian" | "ubuntu") {
        commands.push(
            "RUN command -v python3 || (apt-get update && apt-get install -y \
             --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*)"
                .to_owned(),
        );
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_line_and_python_where_there_is_none() {
        let python = "docker.io/nikolaik/python-nodejs:python3.11-nodejs20";
        assert_eq!(dockerfile(python).unwrap(), [format!("FROM {python}")]);
        for name in [
            "debian",
            "ubuntu:24.04",
            "docker.io/library/debian@sha256:00",
        ] {
            assert_eq!(dockerfile(name).unwrap().len(), 2, "{name}");
        }
        assert_eq!(dockerfile("debian-slim-like").unwrap().len(), 1);
    }

    #[test]
    fn a_name_is_not_a_way_into_the_recipe() {
        for name in ["", "a b", "debian\nRUN rm -rf /", "x'y", "größe"] {
            assert!(dockerfile(name).is_err(), "{name:?}");
        }
    }
}
