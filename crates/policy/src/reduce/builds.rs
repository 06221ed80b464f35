//! Files that the same text writes and hands to a program that builds and runs them.

use super::ScriptWalker;
use crate::effective::ReducedCommand;
use crate::text::{ByteFlow, TaintSet};

const MOST_BUILD_LINES: usize = 64;

impl ScriptWalker<'_> {
    /// Source, recipes and scripts of a project that this very text wrote.
    pub(super) fn run_own_project(&mut self, command: &ReducedCommand) {
        if self.files.is_empty() {
            return;
        }
        match command.program() {
            "make" | "gmake" | "bmake" | "just" | "task" => self.run_own_recipes(command),
            "npm" | "pnpm" | "yarn" | "composer" => self.run_own_package(command),
            "go" | "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "tcc" | "rustc"
            | "java" | "javac" | "swift" | "swiftc" | "crystal" | "nim" | "dart" | "kotlinc"
            | "scala" | "zig" | "ghc" | "runghc" | "ldc2" | "dmd" | "mcs" | "csc" | "dotnet"
            | "vlang" | "v" | "odin" | "bun" | "deno" | "groovy" | "cmake" | "latexmk"
            | "pdflatex" | "terraform" | "Rscript" | "puppet" | "ansible-playbook" | "octave"
            | "julia" => self.run_own_sources(command),
            _ => {}
        }
    }

    fn run_own_sources(&mut self, command: &ReducedCommand) {
        let files: Vec<String> = command.operands().map(|text| text.s.clone()).collect();
        for file in files {
            let taint = self.file(&file).map_or(TaintSet::NONE, |flow| flow.taint);
            if taint.has(TaintSet::NETWORK) {
                self.judge_unknown_code(taint, command.program());
            }
            if let Some(code) = self.file(&file).and_then(|flow| flow.known.clone()) {
                self.look_inside(&code, "script", command);
                self.read_own_mentions(&code);
                self.run_strings(&code);
            }
        }
    }

    /// A document that includes a key prints it.
    fn read_own_mentions(&mut self, code: &str) {
        let words = code.split(|c: char| c.is_whitespace() || "'\"`(){}[]<>,;=".contains(c));
        let secret = words
            .filter(|word| word.starts_with(['/', '~']) && word.len() < 256)
            .take(MOST_BUILD_LINES)
            .any(|word| crate::paths::secret(word, self.workdir(), self.context).is_some());
        if secret {
            self.find(crate::finding::HarmFinding::dangerous(
                crate::finding::HarmCategory::SecretRead,
                "reads a secret in a file that it writes itself",
            ));
        }
    }

    /// `Command::new("sh").arg("-c").arg("…")`: strings with a blank in code that starts programs.
    fn run_strings(&mut self, code: &str) {
        const STARTS: &[&str] = &[
            "Command",
            "exec",
            "ProcessBuilder",
            "Runtime",
            "Process",
            "system",
            "popen",
        ];
        if !STARTS.iter().any(|word| code.contains(word)) {
            return;
        }
        for text in code.split('"').skip(1).step_by(2).take(MOST_BUILD_LINES) {
            if text.contains(' ') {
                self.run_text(text, "a program it writes", &ByteFlow::default());
            }
        }
    }

    fn run_own_recipes(&mut self, command: &ReducedCommand) {
        let named: Vec<String> = ["-f", "--file", "--makefile"]
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .collect();
        let usual = ["Makefile", "makefile", "GNUmakefile", "justfile"].map(str::to_owned);
        for file in named.into_iter().chain(usual) {
            let Some(text) = self.file(&file).and_then(|flow| flow.known.clone()) else {
                continue;
            };
            let recipes: Vec<&str> = text
                .lines()
                .filter(|line| line.starts_with(['\t', ' ']))
                .map(|line| line.trim_start().trim_start_matches(['@', '-', '+']))
                .take(MOST_BUILD_LINES)
                .collect();
            for recipe in recipes {
                self.run_text(recipe, "make", &ByteFlow::default());
            }
        }
    }

    fn run_own_package(&mut self, command: &ReducedCommand) {
        for file in ["package.json", "composer.json"] {
            let Some(text) = self.file(file).and_then(|flow| flow.known.clone()) else {
                continue;
            };
            let name = command.program().to_owned();
            let texts: Vec<&str> = text
                .split('"')
                .skip(1)
                .step_by(2)
                .take(MOST_BUILD_LINES)
                .collect();
            for script in texts
                .into_iter()
                .filter(|text| text.contains([' ', '/', '|']))
            {
                self.run_text(script, &name, &ByteFlow::default());
            }
        }
    }
}
