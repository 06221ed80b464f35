//! Sandboxes: made, found, tagged and ended.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a server is handed its questions, whatever it takes from them"
)]

use std::sync::Arc;
use std::time::Duration;

use hermetic_modal::wire::*;
use tonic::Status;

use super::cell::{Cell, Order};
use super::plane::{Plane, now};

impl Plane {
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
    pub(super) fn living(&self, id: &str) -> Result<Arc<Cell>, Status> {
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
}
