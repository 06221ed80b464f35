//! What there is at this Modal, and who may ask.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a server is handed its questions, whatever it takes from them"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_modal::wire::*;
use hermetic_types::{Clock as _, SystemClock, Timestamp};
use tempfile::TempDir;
use tonic::Status;

use super::cell::Cell;
use super::fault::Faults;
use super::images::Layer;

pub(crate) const TOKEN_ID: &str = "ak-test";
pub(crate) const TOKEN_SECRET: &str = "as-test";
pub(super) const BUILDER: &str = "2025.06";

pub(crate) struct Plane {
    pub(crate) faults: Faults,
    pub(crate) seen: Mutex<Vec<String>>,
    pub(super) cells: Mutex<Vec<Arc<Cell>>>,
    pub(super) apps: Mutex<HashMap<String, String>>,
    pub(super) images: Mutex<HashMap<String, Layer>>,
    /// Creates by their key: a key is answered once.
    pub(super) created: tokio::sync::Mutex<HashMap<String, String>>,
    counter: AtomicU64,
    /// Which of the passes that were given out are good.
    era: AtomicU64,
    pub(super) folder: TempDir,
    pub(crate) url: Mutex<String>,
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

    pub(crate) async fn close(&self) {
        for cell in self.cells() {
            cell.end(GenericStatus::Terminated, 137).await;
        }
    }

    pub(super) fn number(&self) -> u64 {
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
}

pub(super) fn now() -> f64 {
    let now = SystemClock.now();
    now.since(Timestamp::UNIX_EPOCH).as_secs_f64()
}
