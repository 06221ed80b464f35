//! Shapes of code that several words make together: a fork bomb, a reverse shell, a file sent away.

use super::super::Walker;
use super::super::literals::Token;
use super::STARTS;
use crate::finding::{Category, Finding};
use crate::paths;

impl Walker<'_> {
    /// Shapes that need several words at once.
    pub(super) fn shapes(&mut self, code: &str, tokens: &[Token], language: &'static str) {
        let names: Vec<&str> = tokens
            .iter()
            .filter_map(|token| match token {
                Token::Name(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let has = |name: &str| names.contains(&name);
        let socket = names.iter().any(|n| {
            matches!(
                *n,
                "socket"
                    | "TCPSocket"
                    | "fsockopen"
                    | "Socket"
                    | "INET"
                    | "create_connection"
                    | "net"
                    | "stream_socket_client"
                    | "inet"
            )
        }) || code.contains("/inet/tcp/")
            || code.contains("socket");
        let shell = code.contains("/bin/sh")
            || code.contains("/bin/bash")
            || code.contains("cmd.exe")
            || code.contains("sh -i")
            || has("dup2")
            || code.contains("bash -i");
        if socket && shell {
            self.find(Finding::dangerous(
                Category::ReverseShell,
                format!("connects a shell to the network, in {language}"),
            ));
        }
        if has("fork")
            && (has("while")
                || has("loop")
                || has("for")
                || has("until")
                || code.contains("fork() while"))
            && !has("wait")
        {
            self.find(Finding::floor(
                Category::ForkBomb,
                "starts copies of itself without end (fork bomb)",
            ));
        }
        if has("kill")
            && code.contains("-1")
            && (code.contains("kill(-1")
                || code.contains("kill 9, -1")
                || code.contains("kill -9, -1")
                || code.contains("kill(9, -1"))
        {
            self.find(Finding::floor(Category::Process, "ends every process"));
        }
        let fetching = names.iter().any(|name| {
            matches!(
                *name,
                "https"
                    | "http"
                    | "urlopen"
                    | "requests"
                    | "fetch"
                    | "httpx"
                    | "file_get_contents"
                    | "LWP"
                    | "curl_exec"
            )
        }) || code.contains("https://")
            || code.contains("http://");
        if fetching && (has("eval") || (has("exec") && language == "python")) {
            self.find(Finding::dangerous(
                Category::RemoteCode,
                format!("runs what it downloads, in {language}"),
            ));
        }
        if has("getattr") && names.iter().any(|n| STARTS.contains(n))
            || (has("getattr") || has("__import__") || has("__builtins__"))
                && tokens
                    .iter()
                    .any(|t| matches!(t, Token::Text(s) if STARTS.contains(&s.as_str())))
        {
            self.find(Finding::dangerous(
                Category::Disguise,
                format!("hides which function it calls, in {language}"),
            ));
        }
        if has("pty") && has("spawn") && socket {
            self.find(Finding::dangerous(
                Category::ReverseShell,
                format!("connects a shell to the network, in {language}"),
            ));
        }
        if has("setuid") && !has("getuid") {
            self.find(Finding::dangerous(
                Category::Privilege,
                format!("changes who it runs as, in {language}"),
            ));
        }
        let sends = names.iter().any(|n| {
            matches!(
                *n,
                "post"
                    | "put"
                    | "sendall"
                    | "sendto"
                    | "send"
                    | "urlopen"
                    | "Request"
                    | "fetch"
                    | "post_form"
                    | "file_get_contents"
                    | "request"
                    | "get"
            )
        });
        let environment = has("environ") || has("env") || has("ENV") || has("getenv");
        if sends
            && environment
            && names.iter().any(|n| {
                matches!(
                    *n,
                    "requests"
                        | "urllib"
                        | "urlopen"
                        | "http"
                        | "https"
                        | "fetch"
                        | "socket"
                        | "Net"
                        | "HTTP"
                        | "LWP"
                        | "httpx"
                )
            })
            && (code.contains("dict(os.environ")
                || code.contains("str(os.environ")
                || code.contains("dumps(os.environ")
                || code.contains("process.env)")
                || code.contains("ENV.to"))
        {
            self.find(Finding::dangerous(
                Category::Exfiltration,
                "sends the environment away",
            ));
        }
        let secret = tokens
            .iter()
            .any(|token| matches!(token, Token::Text(text) if self.is_secret(text)));
        if secret
            && (socket
                || names.iter().any(|n| {
                    matches!(
                        *n,
                        "requests"
                            | "urlopen"
                            | "urllib"
                            | "http"
                            | "https"
                            | "fetch"
                            | "Net"
                            | "LWP"
                            | "httpx"
                            | "curl_exec"
                    )
                }))
        {
            self.find(Finding::dangerous(
                Category::Exfiltration,
                format!("sends a secret away, in {language}"),
            ));
        }
        let networked = socket
            || names.iter().any(|n| {
                matches!(
                    *n,
                    "requests"
                        | "urlopen"
                        | "urllib"
                        | "http"
                        | "https"
                        | "fetch"
                        | "Net"
                        | "LWP"
                        | "httpx"
                )
            });
        if sends && networked && tokens.iter().any(|token| self.names_foreign_file(token)) {
            self.find(Finding::dangerous(
                Category::Exfiltration,
                format!("may send a file away that is not the project's, in {language}"),
            ));
        }
        for token in tokens {
            if let Token::Text(sql) = token
                && let Some(reason) = crate::programs::databases::destructive_sql(sql)
                && names.iter().any(|n| {
                    matches!(
                        *n,
                        "execute" | "query" | "executescript" | "cursor" | "exec" | "do"
                    )
                })
            {
                self.find(Finding::dangerous(Category::Database, reason));
            }
        }
    }

    /// Of the machine or of a home folder, and nothing that a connection itself needs.
    fn names_foreign_file(&self, token: &Token) -> bool {
        use crate::paths::Place;
        let Token::Text(text) = token else {
            return false;
        };
        let path = self.with_home(text);
        path.starts_with('/')
            && path.len() < 256
            && !path.contains("/ssl/")
            && !path.contains("/pki/")
            && matches!(
                paths::place(&path, self.workdir(), self.context),
                Place::InsideSystem | Place::InsideHome
            )
    }

    pub(super) fn is_secret(&self, text: &str) -> bool {
        let path = text.strip_prefix('~').map_or_else(
            || text.to_owned(),
            |rest| format!("{}{rest}", self.context.home),
        );
        (text.starts_with('/') || text.starts_with('~') || text.starts_with('.'))
            && text.len() < 256
            && paths::secret(&path, self.workdir(), self.context).is_some()
    }
}
