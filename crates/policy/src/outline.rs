//! What a tool wants to know of a command's text besides whether it may run.

use crate::syntax::{self, NodeKind, ShellNode, ShellScript, ShellWord, SimpleCommand, WordPart};

/// Longer texts are not looked at: they are written by hand for no terminal.
const LONGEST_OUTLINED_TEXT: usize = 32 * 1024;

/// A shell text at a glance. It decides nothing: what hides from it is only not commented on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellOutline {
    /// The first thing in it that would go on after the shell.
    pub lasting: Option<LastingCommand>,
    /// The program whose exit code is the text's.
    pub last: Option<String>,
    /// Whether it names `sudo` as a command.
    pub sudo: bool,
    /// Whether it has `sudo` read a password from stdin.
    pub sudo_reads_stdin: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastingCommand {
    /// A command ended by `&` that nothing waits for.
    Ampersand,
    /// `nohup`, `setsid` or `disown`.
    Detaches(String),
    /// A program that serves or watches until it is stopped.
    Serves(String),
}

impl ShellOutline {
    /// Empty where the text cannot be read as shell; the shell will say so itself.
    pub fn of(text: &str) -> Self {
        if text.len() > LONGEST_OUTLINED_TEXT {
            return Self::default();
        }
        let Ok(script) = syntax::parse(text) else {
            return Self::default();
        };
        let mut outline = Self::default();
        let mut waits = false;
        outline.visit(&script, &mut waits);
        if waits && outline.lasting == Some(LastingCommand::Ampersand) {
            outline.lasting = None;
        }
        outline.last = last_program(&script);
        outline
    }

    fn visit(&mut self, script: &ShellScript, waits: &mut bool) {
        for pipeline in &script.pipelines {
            if pipeline.background {
                self.found(LastingCommand::Ampersand);
            }
            for stage in &pipeline.stages {
                self.visit_node(stage, waits);
            }
        }
    }

    fn visit_node(&mut self, node: &ShellNode, waits: &mut bool) {
        match &node.kind {
            NodeKind::Simple(simple) => self.visit_simple(simple, waits),
            NodeKind::Subshell(script) | NodeKind::For { body: script, .. } => {
                self.visit(script, waits);
            }
            NodeKind::Group(scripts) => scripts.iter().for_each(|script| self.visit(script, waits)),
            NodeKind::Loop { condition, body } => {
                self.visit(condition, waits);
                self.visit(body, waits);
            }
            NodeKind::Case { arms, .. } => {
                arms.iter()
                    .for_each(|(_, script)| self.visit(script, waits));
            }
            NodeKind::Function { .. } | NodeKind::Arithmetic(_) | NodeKind::Test(_) => {}
        }
    }

    fn visit_simple(&mut self, simple: &SimpleCommand, waits: &mut bool) {
        let words: Vec<String> = simple.words.iter().map(literal).collect();
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        match base_name(program) {
            "wait" => *waits = true,
            name @ ("nohup" | "setsid" | "disown") => {
                self.found(LastingCommand::Detaches(name.to_owned()));
            }
            "sudo" => {
                self.sudo = true;
                self.sudo_reads_stdin |= reads_stdin(arguments);
            }
            name if serves(name, arguments) => {
                let shown = words.iter().take(3).map(String::as_str);
                self.found(LastingCommand::Serves(shown.collect::<Vec<_>>().join(" ")));
            }
            _ => {}
        }
    }

    /// What is worse than a `&` takes its place.
    fn found(&mut self, lasting: LastingCommand) {
        if matches!(self.lasting, None | Some(LastingCommand::Ampersand)) {
            self.lasting = Some(lasting);
        }
    }
}

/// Programs that do not come back by themselves, as people usually start them.
fn serves(name: &str, arguments: &[String]) -> bool {
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if ["--help", "-h", "--version", "-V"].into_iter().any(has) {
        return false;
    }
    let first = arguments.first().map_or("", String::as_str);
    let second = arguments.get(1).map_or("", String::as_str);
    match name {
        "npm" | "pnpm" | "yarn" | "bun" => {
            let script = if first == "run" { second } else { first };
            matches!(script, "dev" | "start" | "serve" | "watch")
        }
        "docker" => first == "compose" && second == "up" && !has("-d") && !has("--detach"),
        "docker-compose" => first == "up" && !has("-d") && !has("--detach"),
        "next" => first == "dev" || first == "start",
        "vite" => matches!(first, "" | "dev" | "serve" | "preview"),
        "ng" | "hugo" | "jekyll" | "webpack" => matches!(first, "serve" | "server"),
        "flask" => has("run"),
        "rails" => matches!(first, "s" | "server"),
        "php" => has("-S"),
        "python" | "python3" => first == "-m" && second == "http.server",
        "nodemon" | "uvicorn" | "gunicorn" | "redis-server" | "nginx" => !has("-t"),
        "tail" => has("-f") || has("-F") || has("--follow"),
        "watch" => !arguments.is_empty(),
        _ => false,
    }
}

/// `sudo -S`, alone or in a cluster, before the command that sudo runs.
fn reads_stdin(arguments: &[String]) -> bool {
    let options = arguments
        .iter()
        .take_while(|argument| argument.starts_with('-') && *argument != "--");
    options.into_iter().any(|option| {
        option == "--stdin" || (!option.starts_with("--") && option[1..].contains('S'))
    })
}

fn last_program(script: &ShellScript) -> Option<String> {
    match &script.pipelines.last()?.stages.last()?.kind {
        NodeKind::Simple(simple) => {
            let word = literal(simple.words.first()?);
            Some(base_name(&word).to_owned())
        }
        NodeKind::Subshell(script) => last_program(script),
        NodeKind::Test(_) => Some("[[".to_owned()),
        _ => None,
    }
}

/// The word as it stands, with expansions left out.
fn literal(word: &ShellWord) -> String {
    fn add(parts: &[WordPart], text: &mut String) {
        for part in parts {
            match part {
                WordPart::Plain(more) | WordPart::Literal(more) => text.push_str(more),
                WordPart::Double(inner) => add(inner, text),
                _ => {}
            }
        }
    }
    let mut text = String::new();
    add(&word.0, &mut text);
    text
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasting(text: &str) -> Option<LastingCommand> {
        ShellOutline::of(text).lasting
    }

    #[test]
    fn what_goes_on_after_the_shell_is_seen() {
        for text in [
            "sleep 100 &",
            "(sleep 100 &)",
            "if true; then sleep 9 & fi",
            "python3 app.py > log 2>&1 &",
        ] {
            assert_eq!(lasting(text), Some(LastingCommand::Ampersand), "{text}");
        }
        for text in [
            "nohup ./x",
            "setsid ./x &",
            "./x & disown",
            "/usr/bin/nohup x",
        ] {
            assert!(
                matches!(lasting(text), Some(LastingCommand::Detaches(_))),
                "{text}"
            );
        }
        for text in [
            "npm run dev",
            "cd app && yarn start",
            "python3 -m http.server 8000",
            "uvicorn app:app --reload",
            "tail -f /var/log/x",
            "FOO=1 vite",
        ] {
            assert!(
                matches!(lasting(text), Some(LastingCommand::Serves(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_only_looks_like_it_is_left_alone() {
        for text in [
            "a && b",
            "a 2>&1 | b &> c",
            "echo 'sleep 1 &'",
            "cat > run.sh <<'EOF'\nnohup server &\nEOF",
            "sleep 1 & sleep 1 & wait",
            "vite build",
            "npm test",
            "docker compose up -d",
            "uvicorn --version",
            "grep nohup notes.txt",
            "echo 'unterminated",
            "timeout 5 npm start",
            "f() { sleep 1 & }",
        ] {
            assert_eq!(lasting(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_command_decides_the_exit_code() {
        for (text, last) in [
            ("grep x y", Some("grep")),
            ("cat a | /bin/grep x", Some("grep")),
            ("make && diff a b", Some("diff")),
            ("cd x; [ -f y ]", Some("[")),
            ("[[ a == b ]]", Some("[[")),
            ("", None),
            ("if a; then b; fi", None),
        ] {
            assert_eq!(ShellOutline::of(text).last.as_deref(), last, "{text}");
        }
    }

    #[test]
    fn sudo_is_seen_where_it_is_a_command() {
        assert!(ShellOutline::of("cd x && sudo make install").sudo);
        assert!(!ShellOutline::of("echo sudo").sudo);
        for text in ["echo pw | sudo -S id", "sudo -kS id", "sudo --stdin id"] {
            assert!(ShellOutline::of(text).sudo_reads_stdin, "{text}");
        }
        assert!(!ShellOutline::of("sudo ls -S").sudo_reads_stdin);
    }
}
