//! A program that is spoken to while it runs.

use std::path::PathBuf;
use std::process::Stdio;

use hermetic_types::SandboxId;
use hermetic_warden::protocol::frame::FrameKind;
use hermetic_warden::protocol::{CutReason, ExitState, RunRequest, encode};
use hermetic_warden::stand_in::{CallerStream, StandInCaller};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio_util::sync::CancellationToken;

use super::commands::EndsWhenDropped;

const PIECE: usize = 16 << 10;

/// Runs the words on the host, in the folder of the sandbox, with both ends open; harmless ones only.
pub(super) async fn run(
    folder: PathBuf,
    sandbox: &SandboxId,
    request: &RunRequest,
    mut caller: StandInCaller,
    end: CancellationToken,
) -> (ExitState, Option<CutReason>) {
    let voice = caller.voice();
    let folder = folder.join(sandbox.as_str());
    let Ok(mut child) = start(&folder, request) else {
        return (ExitState::Exited(127), None);
    };
    let _group = EndsWhenDropped(child.id());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let hearing = async {
        tokio::join!(
            copy(out, FrameKind::Out, voice.clone()),
            copy(err, FrameKind::Err, voice.clone())
        );
    };
    let mut input = child.stdin.take();
    let speaking = async {
        while let Some(frame) = caller.next().await {
            match frame.kind {
                FrameKind::Stdin => hand_over(&mut input, &frame.payload, &voice).await,
                FrameKind::StdinEnd => input = None,
                _ => {}
            }
        }
    };
    let over = async {
        // All that it wrote comes before its end.
        hearing.await;
        child.wait().await
    };
    tokio::select! {
        over = over => {
            let code = over.ok().and_then(|status| status.code());
            (code.map_or(ExitState::Signalled(9), ExitState::Exited), None)
        }
        () = speaking => (ExitState::Signalled(9), Some(CutReason::Killed)),
        () = end.cancelled() => (ExitState::Signalled(9), Some(CutReason::Killed)),
    }
}

fn start(folder: &PathBuf, request: &RunRequest) -> std::io::Result<Child> {
    std::fs::create_dir_all(folder)?;
    let words: Vec<_> = request.argv.iter().map(|word| text(&word.0)).collect();
    let env = request
        .env
        .iter()
        .map(|(name, value)| (text(&name.0), text(&value.0)));
    Command::new(&words[0])
        .args(&words[1..])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(env)
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn hand_over(input: &mut Option<ChildStdin>, bytes: &[u8], voice: &CallerStream) {
    if let Some(open) = input
        && open.write_all(bytes).await.is_err()
    {
        *input = None;
    }
    let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    voice.say(FrameKind::StdinTaken, &encode(&taken)).await;
}

async fn copy(from: Option<impl AsyncRead + Unpin>, kind: FrameKind, voice: CallerStream) {
    let Some(mut from) = from else { return };
    let mut piece = vec![0; PIECE];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        if !voice.say(kind, &piece[..read]).await {
            return;
        }
    }
}
