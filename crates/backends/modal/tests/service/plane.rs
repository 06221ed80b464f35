//! What there is at this Modal: apps, images, sandboxes.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a server is handed its questions, whatever it takes from them"
)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use hermetic_modal::wire::*;
use tempfile::TempDir;
use tonic::Status;

use super::cell::{Cell, Order};
use super::fault::Faults;
use super::process::Process;
use super::wire::*;

pub(crate) const TOKEN_ID: &str = "ak-test";
pub(crate) const TOKEN_SECRET: &str = "as-test";
const BUILDER: &str = "2025.06";

pub(crate) struct Plane {
    pub(crate) faults: Faults,
    pub(crate) seen: Mutex<Vec<String>>,
    cells: Mutex<Vec<Arc<Cell>>>,
    apps: Mutex<HashMap<String, String>>,
    images: Mutex<HashMap<String, Layer>>,
    /// Creates by their key: a key is answered once.
    created: tokio::sync::Mutex<HashMap<String, String>>,
    counter: AtomicU64,
    /// Which of the passes that were given out are good.
    era: AtomicU64,
    folder: TempDir,
    pub(crate) url: Mutex<String>,
}

#[derive(Clone, Default)]
struct Layer {
    recipe: Vec<String>,
    files: Option<PathBuf>,
    built: bool,
}

impl Plane {
    pub(crate) fn new() -> Self {
        Self {
            faults: Faults::default(),
            seen: Mutex::default(),
            cells: Mutex::default(),
            apps: Mutex::default(),
            images: Mutex::default(),
            created: tokio::sync::Mutex::default(),
            counter: AtomicU64::new(1),
            era: AtomicU64::new(1),
            folder: tempfile::tempdir().unwrap(),
            url: Mutex::default(),
        }
    }

    pub(crate) fn cells(&self) -> Vec<Arc<Cell>> {
        let cells = self.cells.lock().unwrap().clone();
        cells.into_iter().filter(|cell| !cell.is_over()).collect()
    }

    /// Passes and tokens that were given out are good no more.
    pub(crate) fn expire(&self) {
        self.era.fetch_add(1, Ordering::Relaxed);
    }

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

    pub(crate) async fn close(&self) {
        for cell in self.cells() {
            cell.end(GenericStatus::Terminated, 137).await;
        }
    }

    fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Shaped as those of Modal's own: a part in the middle says when it ends.
    pub(crate) fn pass(&self, whose: &str) -> String {
        let era = self.era.load(Ordering::Relaxed);
        let claims = format!(
            r#"{{"exp": {}, "sub": "{whose}", "era": {era}}}"#,
            now() + 3600.0
        );
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", encode("{}"), encode(&claims), encode("signed"))
    }

    /// Whether it is of this era and for one whose name starts so.
    pub(crate) fn is_good(&self, pass: &str, whose: &str) -> bool {
        let claims = pass
            .split('.')
            .nth(1)
            .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let claims: Option<serde_json::Value> =
            claims.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let era = self.era.load(Ordering::Relaxed);
        claims.is_some_and(|claims| {
            let sub = claims["sub"].as_str().unwrap_or_default();
            sub.starts_with(whose) && claims["era"] == era
        })
    }

    pub(crate) fn app(
        &self,
        asked: AppGetOrCreateRequest,
    ) -> Result<AppGetOrCreateResponse, Status> {
        let mut apps = self.apps.lock().unwrap();
        if !apps.contains_key(&asked.app_name) {
            if asked.object_creation_type() != ObjectCreation::CreateIfMissing {
                return Err(Status::not_found("no such app"));
            }
            apps.insert(asked.app_name.clone(), format!("ap-{}", self.number()));
        }
        Ok(AppGetOrCreateResponse {
            app_id: apps[&asked.app_name].clone(),
        })
    }

    pub(crate) fn environment(&self) -> EnvironmentGetOrCreateResponse {
        EnvironmentGetOrCreateResponse {
            environment_id: "en-1".to_owned(),
            metadata: Some(EnvironmentMetadata {
                name: "main".to_owned(),
                settings: Some(EnvironmentSettings {
                    image_builder_version: BUILDER.to_owned(),
                }),
            }),
        }
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

    pub(crate) async fn create(
        &self,
        asked: SandboxCreateRequest,
        key: String,
    ) -> Result<SandboxCreateResponse, Status> {
        let mut created = self.created.lock().await;
        let cell = match created.get(&key) {
            Some(id) => self.cell(id)?,
            None => {
                let cell = self.make(asked).await?;
                created.insert(key, cell.id.clone());
                cell
            }
        };
        Ok(SandboxCreateResponse {
            sandbox_id: cell.id.clone(),
            task_id: cell.task.clone(),
            command_router_access: Some(self.access(&cell)),
        })
    }

    async fn make(&self, asked: SandboxCreateRequest) -> Result<Arc<Cell>, Status> {
        let definition = asked.definition.unwrap_or_default();
        if !self
            .apps
            .lock()
            .unwrap()
            .values()
            .any(|app| *app == asked.app_id)
        {
            return Err(Status::not_found("no such app"));
        }
        let image = self
            .images
            .lock()
            .unwrap()
            .get(&definition.image_id)
            .cloned();
        let image = image
            .filter(|image| image.built)
            .ok_or_else(|| Status::not_found("no such image"))?;
        let name = definition.name.clone();
        let same = |cell: &Arc<Cell>| cell.app == asked.app_id && cell.definition.name == name;
        if name.is_some() && self.cells().iter().any(same) {
            return Err(Status::already_exists("a sandbox of that name runs"));
        }
        if definition.timeout_secs == 0 || definition.timeout_secs > 86_400 {
            return Err(Status::invalid_argument("timeout is at most a day"));
        }
        for tag in &asked.tags {
            for text in [&tag.tag_name, &tag.tag_value] {
                let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                if !(1..=63).contains(&text.len()) || !text.chars().all(plain) {
                    return Err(Status::invalid_argument(format!("no tag: {text}")));
                }
            }
        }
        let env = asked
            .secret_sources
            .into_iter()
            .filter_map(|one| match one.source? {
                Source::Env(map) => Some(map.contents),
                Source::SecretId(_) => None,
            });
        let number = self.number();
        let cell = Cell::start(Order {
            // A V2 sandbox: not the shape of the older ones.
            id: format!("sb-V2test{number}"),
            app: asked.app_id,
            definition,
            tags: asked.tags,
            env: env.flatten().collect(),
            created_at: now(),
            files: image.files,
            root: self.folder.path().join(format!("cell-{number}")),
        })
        .await?;
        self.cells.lock().unwrap().push(Arc::clone(&cell));
        Ok(cell)
    }

    pub(crate) fn cell(&self, id: &str) -> Result<Arc<Cell>, Status> {
        let cells = self.cells.lock().unwrap();
        let found = cells.iter().find(|cell| cell.id == id || cell.task == id);
        found
            .cloned()
            .ok_or_else(|| Status::not_found("no such sandbox"))
    }

    /// One that is not over.
    fn living(&self, id: &str) -> Result<Arc<Cell>, Status> {
        let cell = self.cell(id)?;
        match cell.is_over() {
            true => Err(Status::not_found("the task is over")),
            false => Ok(cell),
        }
    }

    fn access(&self, cell: &Cell) -> CommandRouterAccess {
        CommandRouterAccess {
            jwt: self.pass(&cell.task),
            url: self.url.lock().unwrap().clone(),
        }
    }

    pub(crate) fn router(
        &self,
        asked: SandboxGetCommandRouterAccessRequest,
    ) -> Result<CommandRouterAccess, Status> {
        Ok(self.access(&*self.living(&asked.sandbox_id)?))
    }

    /// Two on a page, so that pages are turned.
    pub(crate) fn list(&self, asked: SandboxListRequest) -> SandboxListResponse {
        let before = if asked.before_timestamp == 0.0 {
            f64::MAX
        } else {
            asked.before_timestamp
        };
        let mut cells = self.cells();
        cells.retain(|cell| {
            let tags = cell.tags.lock().unwrap();
            cell.app == asked.app_id
                && cell.created_at < before
                && asked.tags.iter().all(|tag| tags.contains(tag))
        });
        cells.sort_by(|a, b| b.created_at.total_cmp(&a.created_at));
        let info = |cell: &Arc<Cell>| SandboxInfo {
            id: cell.id.clone(),
            created_at: cell.created_at,
            tags: cell.tags.lock().unwrap().clone(),
        };
        SandboxListResponse {
            sandboxes: cells.iter().take(2).map(info).collect(),
        }
    }

    pub(crate) fn tag(&self, asked: SandboxTagsSetRequest) -> Result<Empty, Status> {
        *self.living(&asked.sandbox_id)?.tags.lock().unwrap() = asked.tags;
        Ok(Empty {})
    }

    pub(crate) fn task(
        &self,
        asked: SandboxGetTaskIdRequest,
    ) -> Result<SandboxGetTaskIdResponse, Status> {
        let cell = self.cell(&asked.sandbox_id)?;
        let result = cell.result().borrow().clone();
        Ok(SandboxGetTaskIdResponse {
            task_id: result.is_none().then(|| cell.task.clone()),
            task_result: result,
        })
    }

    pub(crate) async fn terminate(
        &self,
        asked: SandboxTerminateRequest,
    ) -> Result<SandboxTerminateResponse, Status> {
        let cell = self.cell(&asked.sandbox_id)?;
        let existing_result = cell.result().borrow().clone();
        cell.end(GenericStatus::Terminated, 137).await;
        Ok(SandboxTerminateResponse { existing_result })
    }

    pub(crate) async fn wait(
        &self,
        asked: SandboxWaitRequest,
    ) -> Result<SandboxWaitResponse, Status> {
        let mut result = self.cell(&asked.sandbox_id)?.result();
        let patience = Duration::from_secs_f32(asked.timeout);
        let over = tokio::time::timeout(patience, result.wait_for(Option::is_some)).await;
        let result = match over {
            Ok(Ok(result)) => result.clone(),
            _ => None,
        };
        Ok(SandboxWaitResponse {
            result: Some(result.unwrap_or_default()),
        })
    }

    pub(crate) async fn entry_stdin(
        &self,
        asked: SandboxStdinWriteRequest,
    ) -> Result<Empty, Status> {
        let cell = self.living(&asked.task_id)?;
        cell.touch();
        cell.entry
            .write(asked.offset, &asked.data, asked.eof)
            .await?;
        Ok(Empty {})
    }

    pub(crate) fn entry_stdio(
        &self,
        asked: SandboxStdioReadRequest,
    ) -> Result<BoxStream<'static, SandboxStdioReadResponse>, Status> {
        let cell = self.cell(&asked.task_id)?;
        let mut starting_offset = asked.offset;
        let record = match asked.file_descriptor {
            0 => &cell.entry.stdout,
            _ => &cell.entry.stderr,
        };
        let pieces = record.from(asked.offset).map(move |data| {
            let at = starting_offset;
            starting_offset += data.len() as u64;
            SandboxStdioReadResponse {
                data,
                starting_offset: at,
            }
        });
        Ok(pieces.boxed())
    }

    pub(crate) fn start_exec(&self, asked: TaskExecStartRequest) -> Result<Empty, Status> {
        let cell = self.living(&asked.task_id)?;
        cell.touch();
        cell.exec(&asked.exec_id, &asked.command_args)?;
        Ok(Empty {})
    }

    fn exec(&self, task: &str, id: &str) -> Result<Arc<Process>, Status> {
        let cell = self.cell(task)?;
        let execs = cell.execs.lock().unwrap();
        execs
            .get(id)
            .cloned()
            .ok_or_else(|| Status::not_found("no such exec"))
    }

    pub(crate) async fn exec_stdin(
        &self,
        asked: TaskExecStdinWriteRequest,
    ) -> Result<Empty, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        exec.write(asked.offset, &asked.data, asked.eof).await?;
        Ok(Empty {})
    }

    pub(crate) fn exec_stdio(
        &self,
        asked: TaskExecStdioReadRequest,
    ) -> Result<BoxStream<'static, TaskExecStdioReadResponse>, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        let record = match asked.file_descriptor() {
            StdioStream::Stdout => &exec.stdout,
            StdioStream::Stderr => &exec.stderr,
        };
        let pieces = record.from(asked.offset);
        Ok(pieces
            .map(|data| TaskExecStdioReadResponse { data })
            .boxed())
    }

    pub(crate) async fn exec_wait(&self, asked: TaskExecWaitRequest) -> Result<ExitStatus, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        Ok(ExitStatus {
            exit_status: Some(exec.ended().await),
        })
    }

    pub(crate) fn exec_poll(&self, asked: TaskExecPollRequest) -> Result<ExitStatus, Status> {
        let exec = self.exec(&asked.task_id, &asked.exec_id)?;
        Ok(ExitStatus {
            exit_status: exec.ended().now_or_never(),
        })
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

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}
