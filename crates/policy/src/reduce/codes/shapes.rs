//! Shapes of code that several words make together: a fork bomb, a reverse shell, a file sent away.

use super::super::ScriptWalker;
use super::super::literals::CodeToken;
use super::{names, vocabulary};
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::ByteFlow;

/// What the words of a piece of code say taken together.
struct CodeWords<'t> {
    code: &'t str,
    tokens: &'t [CodeToken],
    names: Vec<&'t str>,
}

impl ScriptWalker<'_> {
    pub(super) fn shapes(&mut self, code: &str, tokens: &[CodeToken], language: &'static str) {
        let words = CodeWords {
            code,
            tokens,
            names: names(tokens, usize::MAX).collect(),
        };
        if words.opens_socket() && (words.opens_shell() || words.obeys_a_connection()) {
            let what = "connects a shell to the network";
            self.found_in_code(HarmCategory::ReverseShell, what, language);
        }
        if words.forks_without_end() {
            self.find(HarmFinding::floor(
                HarmCategory::ForkBomb,
                "starts copies of itself without end (fork bomb)",
            ));
        }
        if words.kills_all() {
            self.find(HarmFinding::floor(
                HarmCategory::Process,
                "ends every process",
            ));
        }
        if words.has("reboot") && (words.has("CDLL") || words.has("syscall") || words.has("ctypes"))
        {
            self.find(HarmFinding::floor(
                HarmCategory::Power,
                "stops or restarts the machine",
            ));
        }
        let includes = language == "php" && (words.has("include") || words.has("require"));
        let reads_address = words.has("stringWithContentsOfURL") && words.has("eval");
        if includes && words.says_one_of(&["http://", "https://"]) || reads_address {
            self.found_in_code(HarmCategory::RemoteCode, "runs what it downloads", language);
        }
        let sources = ["source", "include", "import", "load", "dofile"]
            .iter()
            .any(|name| words.has(name));
        let addressed = words
            .tokens
            .iter()
            .any(|token| matches!(token, CodeToken::Text(text) if text.starts_with("http")));
        if language == "script" && sources && addressed {
            self.found_in_code(HarmCategory::RemoteCode, "runs what it downloads", language);
        }
        if words.evaluates_a_download(language) {
            self.found_in_code(HarmCategory::RemoteCode, "runs what it downloads", language);
        }
        if words.hides_a_call() {
            // Whatever it calls is given one of these.
            let texts = words.tokens.iter().filter_map(|token| match token {
                CodeToken::Text(text) if text.contains(' ') && text.len() < 2_000 => {
                    Some(text.clone())
                }
                _ => None,
            });
            for text in texts.take(4).collect::<Vec<_>>() {
                self.run_text(&text, language, &ByteFlow::default());
            }
            let what = "hides which function it calls";
            self.found_in_code(HarmCategory::Disguise, what, language);
        }
        if words.has("setuid") && !words.has("getuid") {
            self.found_in_code(HarmCategory::Privilege, "changes who it runs as", language);
        }
        self.leaves(&words, language);
        for reason in words.destructive_sql() {
            self.find(HarmFinding::dangerous(HarmCategory::Database, reason));
        }
    }

    /// What the code would send away.
    fn leaves(&mut self, words: &CodeWords<'_>, language: &'static str) {
        let by_module = words
            .tokens
            .iter()
            .any(|token| matches!(token, CodeToken::Text(text) if vocabulary::speaks_http(text)));
        let networked = by_module || words.opens_socket() || words.any(vocabulary::speaks_http);
        if !networked {
            return;
        }
        let sends = words.any(vocabulary::sends);
        if sends && words.takes_the_environment() {
            let what = "sends the environment away";
            self.found_in_code(HarmCategory::Exfiltration, what, language);
        }
        let mut tokens = words.tokens.iter();
        if tokens.any(|token| matches!(token, CodeToken::Text(text) if self.is_secret(text))) {
            self.found_in_code(HarmCategory::Exfiltration, "sends a secret away", language);
        }
        let mut tokens = words.tokens.iter();
        if (sends || words.opens_socket()) && tokens.any(|token| self.names_foreign_file(token)) {
            let what = "may send a file away that is not the project's";
            self.found_in_code(HarmCategory::Exfiltration, what, language);
        }
    }
}

impl CodeWords<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    fn any(&self, is: fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| is(name))
    }

    fn says_one_of(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.code.contains(text))
    }

    fn opens_socket(&self) -> bool {
        self.any(vocabulary::opens_socket) || self.says_one_of(&["/inet/tcp/", "socket"])
    }

    fn opens_shell(&self) -> bool {
        self.has("dup2")
            || self.has("pty")
            || self.says_one_of(&["/bin/sh", "/bin/bash", "cmd.exe", "sh -i", "bash -i"])
    }

    /// Reads from a connection and starts something.
    fn obeys_a_connection(&self) -> bool {
        const READS: &[&str] = &[
            "gets",
            "receive",
            "recv",
            "getline",
            "fdopen",
            "read",
            "fgets",
            "readline",
            "accept",
            "pipe",
            "socket_read",
            "stream_get_line",
        ];
        const RUNS: &[&str] = &[
            "system",
            "popen",
            "exec",
            "spawn",
            "shell_exec",
            "proc_open",
            "run",
            "Command",
            "getoutput",
            "check_output",
        ];
        let has_one_of = |names: &[&str]| names.iter().any(|name| self.has(name));
        has_one_of(READS) && has_one_of(RUNS)
    }

    fn forks_without_end(&self) -> bool {
        (self.has("fork") || self.has("pcntl_fork"))
            && !self.has("wait")
            && ["while", "loop", "for", "until"]
                .iter()
                .any(|word| self.has(word))
    }

    fn kills_all(&self) -> bool {
        let each = self.has("process_iter") || self.has("pids");
        if each && (self.has("kill") || self.has("terminate")) && !self.has("if") {
            return true;
        }
        // Every number that `/proc` lists.
        let lists = ["listdir", "readdirSync", "glob", "scandir"];
        let of_proc = self.says_one_of(&["'/proc'", "\"/proc\""]);
        if self.has("kill") && of_proc && lists.iter().any(|name| self.has(name)) {
            return true;
        }
        self.has("kill")
            && self.says_one_of(&[
                "kill(1,",
                "kill(1)",
                "kill(-1",
                "kill 9, -1",
                "kill -9, -1",
                "kill(9, -1",
                "kill 9,-1",
                "kill(9,-1",
            ])
    }

    fn evaluates_a_download(&self, language: &str) -> bool {
        let fetches = self.any(vocabulary::speaks_http)
            || self.has("file_get_contents")
            || self.says_one_of(&["https://", "http://"]);
        let kept = self.has("write") || self.has("urlretrieve") || self.has("writeFileSync");
        let starts = self.any(vocabulary::starts) && self.says_one_of(&["https://", "http://"]);
        fetches && (self.has("eval") || self.has("exec") && language == "python" || kept && starts)
    }

    fn hides_a_call(&self) -> bool {
        let by_text = || {
            self.tokens
                .iter()
                .any(|token| matches!(token, CodeToken::Text(text) if vocabulary::starts(text)))
        };
        self.has("getattr") && self.any(vocabulary::starts)
            || (self.has("getattr") || self.has("__import__") || self.has("__builtins__"))
                && by_text()
    }

    fn takes_the_environment(&self) -> bool {
        self.says_one_of(&[
            "dict(os.environ",
            "str(os.environ",
            "dumps(os.environ",
            "process.env)",
            "ENV.to",
            "=os.environ",
            "%ENV",
            "getenv())",
        ])
    }

    fn destructive_sql(&self) -> Vec<&'static str> {
        let queries = self.names.iter().any(|name| {
            matches!(
                *name,
                "execute" | "query" | "executescript" | "cursor" | "exec" | "do"
            )
        });
        let texts = self.tokens.iter().filter(|_| queries);
        texts
            .filter_map(|token| match token {
                CodeToken::Text(sql) => crate::programs::databases::destructive_sql(sql),
                _ => None,
            })
            .collect()
    }
}
