//! Images: built from a recipe, or the files of a sandbox.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a server is handed its questions, whatever it takes from them"
)]

use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hermetic_modal::wire::*;
use tonic::Status;

use super::plane::{BUILDER, Plane};
use super::wire::*;

#[derive(Clone, Default)]
pub(super) struct Layer {
    recipe: Vec<String>,
    pub(super) files: Option<PathBuf>,
    pub(super) built: bool,
}

impl Plane {
    pub(crate) fn drop_image(&self, id: &str) {
        self.images
            .lock()
            .unwrap()
            .remove(id)
            .expect("there is such an image");
    }

    pub(crate) fn has_image(&self, id: &str) -> bool {
        self.images.lock().unwrap().contains_key(id)
    }

    pub(crate) fn image(
        &self,
        asked: ImageGetOrCreateRequest,
    ) -> Result<ImageGetOrCreateResponse, Status> {
        if asked.builder_version != BUILDER {
            return Err(Status::invalid_argument("no such builder"));
        }
        let recipe = asked.image.unwrap_or_default().dockerfile_commands;
        let mut images = self.images.lock().unwrap();
        let known = images
            .iter()
            .find(|(_, image)| image.recipe == recipe && image.built);
        if let Some((id, _)) = known {
            return Ok(ImageGetOrCreateResponse {
                image_id: id.clone(),
                result: Some(success()),
            });
        }
        let id = format!("im-{}", self.number());
        let image = Layer {
            recipe,
            ..Layer::default()
        };
        images.insert(id.clone(), image);
        Ok(ImageGetOrCreateResponse {
            image_id: id,
            result: None,
        })
    }

    /// A build that says a little, and then how it went.
    pub(crate) fn build(
        self: Arc<Self>,
        asked: ImageJoinStreamingRequest,
    ) -> Result<BoxStream<'static, ImageJoinStreamingResponse>, Status> {
        let mut images = self.images.lock().unwrap();
        let image = images
            .get_mut(&asked.image_id)
            .ok_or_else(|| Status::not_found("no such image"))?;
        let works = !image.recipe.iter().any(|line| line.contains("nowhere"));
        image.built = works;
        let log = |n: u32| ImageJoinStreamingResponse {
            task_logs: vec![TaskLogs {
                data: format!("step {n}\n"),
            }],
            entry_id: format!("{n}-0"),
            ..ImageJoinStreamingResponse::default()
        };
        let result = if works {
            success()
        } else {
            GenericResult {
                status: GenericStatus::Failure.into(),
                exception: "manifest unknown".to_owned(),
                exitcode: 1,
            }
        };
        let last = ImageJoinStreamingResponse {
            result: Some(result),
            ..ImageJoinStreamingResponse::default()
        };
        Ok(stream::iter([log(1), log(2), last]).boxed())
    }

    pub(crate) fn image_by_id(
        &self,
        asked: ImageFromIdRequest,
    ) -> Result<ImageFromIdResponse, Status> {
        if !self.has_image(&asked.image_id) {
            return Err(Status::not_found("no such image"));
        }
        Ok(ImageFromIdResponse {
            image_id: asked.image_id,
        })
    }

    pub(crate) fn delete_image(&self, asked: ImageDeleteRequest) -> Result<Empty, Status> {
        let removed = self.images.lock().unwrap().remove(&asked.image_id);
        let removed = removed.ok_or_else(|| Status::not_found("no such image"))?;
        if let Some(files) = removed.files {
            let _ = std::fs::remove_dir_all(files);
        }
        Ok(Empty {})
    }

    pub(crate) async fn snapshot(
        &self,
        asked: TaskSnapshotFilesystemRequest,
    ) -> Result<TaskSnapshotFilesystemResponse, Status> {
        let id = format!("im-{}", asked.snapshot_id.replace('-', ""));
        let files = self.folder.path().join(&id);
        if !self.has_image(&id) {
            self.living(&asked.task_id)?.snapshot(&files).await?;
        }
        let image = Layer {
            files: Some(files),
            built: true,
            ..Layer::default()
        };
        self.images.lock().unwrap().insert(id.clone(), image);
        Ok(TaskSnapshotFilesystemResponse { image_id: id })
    }
}

fn success() -> GenericResult {
    GenericResult {
        status: GenericStatus::Success.into(),
        ..GenericResult::default()
    }
}
