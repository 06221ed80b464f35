//! Stories about files: one conversation and its sandbox, told in one call.

use std::path::Path;

use hermetic_tools::NoOneToAsk;
use hermetic_types::BackendKind;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::room::{self, PATIENCE, Wishes};

pub(crate) use crate::room::SECRET;

pub(crate) struct Lab {
    room: room::Lab,
    pub(crate) stop: CancellationToken,
}

/// Tells a story in a native sandbox.
pub(crate) fn native(story: impl AsyncFnOnce(&Lab)) {
    tell(Wishes::default(), story);
}

/// Tells a story on this machine itself, with `home` for a home.
pub(crate) fn local(home: &Path, story: impl AsyncFnOnce(&Lab)) {
    let wishes = Wishes {
        backend: BackendKind::Local,
        home: Some(home.to_owned()),
        ..Wishes::default()
    };
    tell(wishes, story);
}

/// Tells a story somewhere else.
pub(crate) fn on(backend: BackendKind, story: impl AsyncFnOnce(&Lab)) {
    let wishes = Wishes {
        backend,
        ..Wishes::default()
    };
    tell(wishes, story);
}

fn tell(wishes: Wishes, story: impl AsyncFnOnce(&Lab)) {
    let thread = std::thread::current();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let test = thread.name().unwrap_or("a story");
        let Some(room) = room::Lab::open_with(test, wishes).await else {
            return;
        };
        let lab = Lab {
            room,
            stop: CancellationToken::new(),
        };
        tokio::time::timeout(2 * PATIENCE, story(&lab))
            .await
            .expect("the story ends");
        lab.room.close().await;
    });
}

impl Lab {
    /// Calls a tool as a model does: a name and JSON in, JSON out.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let json = self.room.call_until(name, arguments, &self.stop).await;
        let length = json.to_string().chars().count();
        assert!(length <= 100_000, "a result is bounded");
        json
    }

    /// Calls a tool for a model that is shown files as they are, or is not; with how many pictures and files.
    pub(crate) async fn call_showing_files(
        &self,
        shows_files: bool,
        name: &str,
        arguments: Value,
    ) -> (Value, usize) {
        let toolbox = self.room.kit.toolbox(&*self.room.room, &NoOneToAsk);
        let toolbox = toolbox.showing_files(shows_files);
        let arguments = arguments.as_object().unwrap().clone();
        let called = toolbox.call(name, &arguments, &self.stop);
        let called = tokio::time::timeout(PATIENCE, called).await;
        let answered = called.expect("the call ends").expect("a tool");
        (answered.json.into_inner(), answered.media.len())
    }

    /// How many commands run in the sandbox.
    pub(crate) async fn running(&self) -> usize {
        let sandbox = self.room.room.sandbox();
        let runs = sandbox.warden().runs().await.unwrap();
        runs.iter().filter(|run| run.ended.is_none()).count()
    }

    /// What a shell command prints, for looking at the state from another side.
    pub(crate) async fn sh(&self, command: &str) -> String {
        let json = self.call("terminal", json!({"command": command})).await;
        json["output"].as_str().unwrap().to_owned()
    }
}
