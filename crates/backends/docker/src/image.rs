//! The image: there already, or pulled, with somebody hearing how far it is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;
use hermetic_sandbox::BackendError;
use tokio::time::{Instant, timeout};

use crate::docker::DockerState;
use crate::engine::status;
use crate::login;

/// Hears of a pull.
#[derive(Clone, Default)]
pub struct PullListener(Option<Arc<HearPull>>);

type HearPull = dyn Fn(&PullProgress) + Send + Sync;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullProgress {
    pub image: String,
    pub layers: usize,
    pub layers_done: usize,
    pub bytes: u64,
    pub bytes_known: u64,
    pub done: bool,
}

/// What an image says about its containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageFacts {
    /// The engine's own id: a name may move on to another image.
    pub(crate) id: String,
    pub(crate) user: Option<String>,
    pub(crate) volumes: Vec<String>,
}

/// A registry that is silent for this long has gone.
const PULL_SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
/// More often than this nobody wants to hear of it.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// No image has more layers than this.
const MOST_LAYERS: usize = 1024;

pub(crate) async fn provide(
    host: &DockerState,
    docker: &Docker,
    image: &str,
) -> Result<ImageFacts, BackendError> {
    if let Some(picture) = look(host, docker, image).await? {
        return Ok(picture);
    }
    // Two first conversations want it at the same moment: one pulls.
    let _turn = host.preparing.lock().await;
    // Looked at again: whoever had the turn before us most likely wanted the same.
    if let Some(picture) = look(host, docker, image).await? {
        return Ok(picture);
    }
    pull(host, docker, image).await?;
    look(host, docker, image)
        .await?
        .ok_or_else(|| unavailable(image, "the engine pulled it and does not have it"))
}

pub(crate) async fn look(
    host: &DockerState,
    docker: &Docker,
    image: &str,
) -> Result<Option<ImageFacts>, BackendError> {
    match docker.inspect_image(image).await {
        Ok(found) => {
            let config = found.config.unwrap_or_default();
            Ok(Some(ImageFacts {
                id: found.id.unwrap_or_else(|| image.to_owned()),
                user: config.user,
                volumes: config.volumes.unwrap_or_default(),
            }))
        }
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(host.engine.trouble("look at the image", error)),
    }
}

async fn pull(host: &DockerState, docker: &Docker, image: &str) -> Result<(), BackendError> {
    tracing::info!(image, "pulling the image");
    let options = CreateImageOptionsBuilder::new()
        .from_image(&tagged(image))
        .build();
    let login = match &host.config.client_folder {
        Some(folder) => login::of(folder, image).await,
        None => None,
    };
    let mut news = std::pin::pin!(docker.create_image(Some(options), None, login));
    let mut pull = PullState::new(image);
    let mut last = Instant::now();
    loop {
        // Only silence ends it, as nobody can say how long a pull may take.
        match timeout(PULL_SILENCE_TIMEOUT, news.next()).await {
            Ok(Some(Ok(one))) => {
                if let Some(error) = one.error_detail.as_ref().and_then(|e| e.message.clone()) {
                    return Err(unavailable(image, &error));
                }
                pull.hear(one);
                if last.elapsed() >= PROGRESS_INTERVAL {
                    last = Instant::now();
                    host.config.tell.say(&pull.progress(false));
                }
            }
            Ok(Some(Err(error))) => return Err(refused(host, image, error)),
            Ok(None) => break,
            Err(_) => return Err(unavailable(image, "the registry fell silent")),
        }
    }
    host.config.tell.say(&pull.progress(true));
    tracing::info!(image, "the image is there");
    Ok(())
}

/// Without a tag the engine would pull every one there is.
fn tagged(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

fn refused(host: &DockerState, image: &str, error: Error) -> BackendError {
    match &error {
        Error::DockerResponseServerError { message, .. } => unavailable(image, message),
        Error::DockerStreamError { error } => unavailable(image, error),
        _ => host.engine.trouble("pull the image", error),
    }
}

fn unavailable(image: &str, why: &str) -> BackendError {
    BackendError::Unavailable {
        what: format!("the image {image} cannot be had: {why}"),
        remedy: format!(
            "check its name, or bring it to the engine yourself (docker pull {image}, docker load)"
        ),
    }
}

/// What has been heard of one pull, layer by layer.
struct PullState {
    image: String,
    layers: HashMap<String, (u64, u64, bool)>,
}

impl PullState {
    fn new(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            layers: HashMap::new(),
        }
    }

    fn hear(&mut self, news: CreateImageInfo) {
        let (Some(id), Some(status)) = (news.id, news.status) else {
            return;
        };
        // The first line names the tag as an id, and is no layer.
        if status.starts_with("Pulling from")
            || (self.layers.len() >= MOST_LAYERS && !self.layers.contains_key(&id))
        {
            return;
        }
        let layer = self.layers.entry(id).or_default();
        if status == "Downloading"
            && let Some(detail) = news.progress_detail
        {
            layer.0 = unsigned(detail.current);
            layer.1 = unsigned(detail.total);
        }
        if status == "Pull complete" || status == "Already exists" {
            *layer = (layer.1, layer.1, true);
        }
    }

    fn progress(&self, done: bool) -> PullProgress {
        let layers = self.layers.values();
        PullProgress {
            image: self.image.clone(),
            layers: layers.len(),
            layers_done: layers.clone().filter(|(_, _, done)| *done).count(),
            bytes: layers.clone().map(|(bytes, _, _)| bytes).sum(),
            bytes_known: layers.map(|(_, bytes, _)| bytes).sum(),
            done,
        }
    }
}

fn unsigned(figure: Option<i64>) -> u64 {
    figure
        .and_then(|figure| u64::try_from(figure).ok())
        .unwrap_or_default()
}

impl PullListener {
    pub fn new(hear: impl Fn(&PullProgress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    fn say(&self, progress: &PullProgress) {
        if let Some(hear) = &self.0 {
            hear(progress);
        }
    }
}

impl std::fmt::Debug for PullListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tell")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ProgressDetail;

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        assert_eq!(tagged("debian"), "debian:latest");
        assert_eq!(tagged("here:5000/debian"), "here:5000/debian:latest");
        assert_eq!(tagged("debian:12"), "debian:12");
        assert_eq!(tagged("debian@sha256:00"), "debian@sha256:00");
    }

    #[test]
    fn progress_is_the_sum_of_its_layers() {
        let news = |id: &str, status: &str, bytes: Option<(i64, i64)>| CreateImageInfo {
            id: Some(id.to_owned()),
            status: Some(status.to_owned()),
            progress_detail: bytes.map(|(current, total)| ProgressDetail {
                current: Some(current),
                total: Some(total),
            }),
            error_detail: None,
        };
        let mut pull = PullState::new("debian");
        pull.hear(news("12", "Pulling from library/debian", None));
        pull.hear(news("a", "Downloading", Some((5, 10))));
        pull.hear(news("b", "Already exists", None));
        pull.hear(news("c", "Downloading", Some((-1, 90))));
        pull.hear(news("a", "Pull complete", None));
        let progress = pull.progress(false);
        assert_eq!((progress.layers, progress.layers_done), (3, 2));
        assert_eq!((progress.bytes, progress.bytes_known), (10, 100));
    }
}
