//! Persistent shells.

use std::rc::Rc;

use super::client::Call;
use super::world::World;
use crate::protocol::{Failure, FailureKind, Reply, Shell};

#[derive(Debug, Default)]
pub(crate) struct Shells;

impl Shells {
    pub(crate) fn count(&self) -> u32 {
        0
    }
}

pub(crate) async fn run(_world: &Rc<World>, call: Call, _request: Shell) {
    call.fail(&absent()).await;
}

pub(crate) async fn kill(_world: &Rc<World>, _name: &str) -> Result<Reply, Failure> {
    Err(absent())
}

fn absent() -> Failure {
    Failure {
        kind: FailureKind::NoShell,
        errno: None,
        text: "this warden has no persistent shells".into(),
    }
}
