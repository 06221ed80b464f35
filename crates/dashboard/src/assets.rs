//! The files that come along with the pages.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("../assets/dashboard.css");
const SCRIPT: &str = include_str!("../assets/dashboard.js");
const CHAT_SCRIPT: &str = include_str!("../assets/chat.js");
const SCREEN_SCRIPT: &str = include_str!("../assets/terminal-screen.js");
const TERMINAL_SCRIPT: &str = include_str!("../assets/terminal.js");
const TERMINAL_STYLE: &str = include_str!("../assets/terminal.css");
const ICON: &str = include_str!("../assets/icon.svg");

/// Names this version of the files, so that a browser may keep them for good.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for text in [
        STYLE,
        SCRIPT,
        CHAT_SCRIPT,
        SCREEN_SCRIPT,
        TERMINAL_SCRIPT,
        TERMINAL_STYLE,
        ICON,
    ] {
        hash.update(text.as_bytes());
    }
    hash.finalize()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
});

pub(crate) fn url(name: &str) -> String {
    format!("/assets/{name}?{}", *VERSION)
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route(
            "/assets/dashboard.css",
            get(|| async { file("text/css; charset=utf-8", STYLE) }),
        )
        .route(
            "/assets/dashboard.js",
            get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }),
        )
        .route(
            "/assets/chat.js",
            get(|| async { file("text/javascript; charset=utf-8", CHAT_SCRIPT) }),
        )
        .route(
            "/assets/terminal-screen.js",
            get(|| async { file("text/javascript; charset=utf-8", SCREEN_SCRIPT) }),
        )
        .route(
            "/assets/terminal.js",
            get(|| async { file("text/javascript; charset=utf-8", TERMINAL_SCRIPT) }),
        )
        .route(
            "/assets/terminal.css",
            get(|| async { file("text/css; charset=utf-8", TERMINAL_STYLE) }),
        )
        .route(
            "/assets/icon.svg",
            get(|| async { file("image/svg+xml", ICON) }),
        )
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What a colon separates says more of the parameter before it: read as parameters of their own, a curly line
    /// becomes italics and a colour switches lines on.
    const COLONS: &str = r#"
const pen = (text) => {
  const screen = new TerminalScreen(20, 4);
  screen.write(new TextEncoder().encode(text));
  return screen.pen;
};
const same = (text, wanted) => {
  const found = pen(text);
  for (const [name, value] of Object.entries(wanted)) {
    if (found[name] !== value) throw new Error(`${JSON.stringify(text)}: ${name} is ${found[name]}`);
  }
};
same("\x1b[4:3m", { underline: true, italic: false });
same("\x1b[4m\x1b[4:0m", { underline: false });
same("\x1b[38:2::10:20:30m", { fg: 0x10a141e, dim: false, bold: false });
same("\x1b[38:2:10:20:30;1m", { fg: 0x10a141e, bold: true });
same("\x1b[48:5:7m", { bg: 7 });
same("\x1b[38;2;10;20;30;3m", { fg: 0x10a141e, italic: true });
same("\x1b[58:2::1:2:3m", { underline: false, fg: null });
"#;

    #[test]
    fn what_a_colon_separates_is_no_parameter_of_its_own() {
        let script = format!("{SCREEN_SCRIPT}\n{COLONS}");
        match Command::new("node").args(["-e", &script]).output() {
            Err(why) => eprintln!("SKIP: what_a_colon_separates_is_no_parameter_of_its_own: {why}"),
            Ok(ran) => assert!(
                ran.status.success(),
                "{}",
                String::from_utf8_lossy(&ran.stderr)
            ),
        }
    }
}
