//! Walking the tree.

use std::rc::Rc;

use super::Walker;
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::paths;
use crate::syntax::{
    Assign, AssignValue, Kind, Node, Part, Pipeline, Redirect, RedirectOp, Script, Simple, Word,
};
use crate::text::{Flow, Shape, Taint, Text};

/// A `for` over more known words than this is walked with a hole.
const MOST_ROUNDS: usize = 24;

/// What a command's redirections do.
#[derive(Default)]
pub(super) struct Redirected {
    pub(super) input: Option<Flow>,
    pub(super) writes: Vec<Text>,
    pub(super) reads: Vec<Text>,
}

impl Walker<'_> {
    pub(super) fn script(&mut self, script: &Script, input: &Flow) -> Flow {
        let mut output = Flow::known("");
        for pipeline in &script.pipelines {
            if self.steps > super::STEPS {
                break;
            }
            let flow = self.pipeline(pipeline, input.clone());
            output = output.then(flow, super::LONGEST_TEXT);
        }
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, input: Flow) -> Flow {
        let selves = pipeline
            .stages
            .iter()
            .filter(|stage| runs_itself(stage))
            .count();
        if selves > 0 && (pipeline.background || pipeline.stages.len() > 1) {
            self.find(Finding::floor(
                Category::ForkBomb,
                "starts itself again and again",
            ));
        }
        if connects_a_shell(pipeline) {
            self.find(Finding::dangerous(
                Category::ReverseShell,
                "connects a shell to the network",
            ));
        }
        let mut flow = input;
        let unseen = self.unseen;
        self.unseen |= pipeline.stages.len() > 1 && pipeline.stages.last().is_some_and(counts);
        let piped = self.piped;
        for (at, stage) in pipeline.stages.iter().enumerate() {
            self.piped = piped || at + 1 < pipeline.stages.len();
            flow = self.node(stage, flow);
        }
        self.piped = piped;
        self.unseen = unseen;
        flow
    }

    fn node(&mut self, node: &Node, input: Flow) -> Flow {
        if !self.step() {
            return Flow::unknown(Taint::NONE);
        }
        let redirected = self.redirects(&node.redirects);
        let written = redirected.writes.clone();
        if !matches!(node.kind, Kind::Simple(_)) {
            self.compound_reads(&redirected);
        }
        let input = redirected.input.clone().unwrap_or(input);
        let output = match &node.kind {
            Kind::Simple(simple) => return self.simple(simple, redirected, input),
            Kind::Subshell(script) => self.subshell(script, &input),
            Kind::Group(scripts) => {
                let mut output = Flow::known("");
                for script in scripts {
                    output = self.script(script, &input);
                }
                if scripts.len() > 1 {
                    output.known = None;
                }
                output
            }
            Kind::For { name, words, body } => self.for_loop(name, words.as_deref(), body, &input),
            Kind::Case { subject, arms } => {
                self.text(subject);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.text(pattern);
                    }
                    self.script(body, &input);
                }
                Flow::unknown(Taint::NONE)
            }
            Kind::Function { name, body } => self.define(name, body),
            Kind::Arithmetic(word) => {
                self.text(word);
                Flow::known("")
            }
            Kind::Test(words) => {
                for word in words {
                    self.text(word);
                }
                Flow::known("")
            }
        };
        if !written.is_empty() {
            let left = Effective {
                writes: written.clone(),
                ..Effective::default()
            };
            self.remember(&left, &output);
            self.judge(Effective {
                writes: written,
                input: output.clone(),
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..Effective::default()
            });
        }
        output
    }

    /// A loop that is fed from a file nobody can name may print it.
    fn compound_reads(&mut self, redirected: &Redirected) {
        let unknown = redirected.reads.iter().any(Text::is_unbounded);
        if unknown {
            self.judge(Effective {
                words: vec![Text::known("cat")],
                reads: redirected.reads.clone(),
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..Effective::default()
            });
        }
    }

    /// What is assigned inside is gone afterwards.
    pub(super) fn subshell(&mut self, script: &Script, input: &Flow) -> Flow {
        let kept = (self.vars.clone(), self.arrays.clone(), self.cwd.clone());
        let traps = self.traps.len();
        let output = self.script(script, input);
        self.spring_traps(traps);
        (self.vars, self.arrays, self.cwd) = kept;
        output
    }

    pub(super) fn substitution(&mut self, script: &Rc<Script>) -> Flow {
        if self.depth >= super::DEPTH {
            self.doubt("it is nested too deeply to follow");
            return Flow::unknown(Taint::NONE);
        }
        // `$(<file)`
        if let [pipeline] = script.pipelines.as_slice()
            && let [
                Node {
                    kind: Kind::Simple(simple),
                    redirects,
                },
            ] = pipeline.stages.as_slice()
            && simple.words.is_empty()
            && simple.assigns.is_empty()
            && !redirects.is_empty()
        {
            let redirected = self.redirects(redirects);
            self.judge(Effective {
                words: vec![Text::known("cat")],
                reads: redirected.reads,
                writes: redirected.writes,
                cwd: self.cwd.clone(),
                via: self.via.clone(),
                ..Effective::default()
            });
            return redirected.input.unwrap_or_default();
        }
        let script = Rc::clone(script);
        let mut flow = self.below("$( )", |walker| walker.subshell(&script, &Flow::default()));
        // `which a || which b` is one program.
        let finds = |pipeline: &Pipeline| match pipeline.stages.as_slice() {
            [
                Node {
                    kind: Kind::Simple(simple),
                    ..
                },
            ] => matches!(
                simple.words.first().and_then(Word::as_plain),
                Some("which" | "command" | "type")
            ),
            _ => false,
        };
        if script.pipelines.len() > 1 && script.pipelines.iter().all(finds) {
            flow.known = flow
                .known
                .and_then(|text| text.lines().next().map(str::to_owned));
        }
        flow
    }

    pub(super) fn process(&mut self, script: &Rc<Script>, reads: bool) -> Text {
        let script = Rc::clone(script);
        let flow = self.below("<( )", |walker| walker.subshell(&script, &Flow::default()));
        let taint = if reads { flow.taint } else { Taint::NONE };
        self.processes
            .push(if reads { flow } else { Flow::default() });
        Text {
            s: format!("/dev/fd/<{}>", self.processes.len() - 1),
            taint,
            glob: false,
        }
    }

    /// What reading a file would deliver.
    pub(super) fn content_of(&self, file: &Text, stdin: &Flow) -> Flow {
        if let Some(number) = file.s.strip_prefix("/dev/fd/<")
            && let Ok(at) = number.trim_end_matches('>').parse::<usize>()
        {
            return self.processes.get(at).cloned().unwrap_or_default();
        }
        if matches!(
            file.s.as_str(),
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-"
        ) {
            return stdin.clone();
        }
        if file.s.starts_with("/dev/tcp/") || file.s.starts_with("/dev/udp/") {
            return Flow::unknown(Taint::NETWORK);
        }
        if let Some(content) = self.file(&file.s) {
            return content.clone();
        }
        let secret = paths::secret(&file.s, self.workdir(), self.context).is_some();
        let taint = if secret {
            Taint::FILE | Taint::SECRET
        } else {
            Taint::FILE
        };
        Flow::unknown(taint | file.taint)
    }

    fn redirects(&mut self, redirects: &[Redirect]) -> Redirected {
        let mut redirected = Redirected::default();
        for redirect in redirects {
            match redirect.op {
                RedirectOp::HereDoc => {
                    let body = redirect
                        .heredoc
                        .as_ref()
                        .and_then(|body| body.get().cloned());
                    let text = self.text(&body.unwrap_or_default());
                    redirected.input = Some(flow_of(&text));
                }
                RedirectOp::HereString => {
                    let mut text = self.text(&redirect.target);
                    text.s.push('\n');
                    redirected.input = Some(flow_of(&text));
                }
                RedirectOp::Read => {
                    let file = self.text(&redirect.target);
                    redirected.input = Some(self.content_of(&file, &Flow::default()));
                    redirected.reads.push(file);
                }
                RedirectOp::Write | RedirectOp::Append => {
                    redirected.writes.push(self.text(&redirect.target));
                }
                RedirectOp::ReadWrite => {
                    let file = self.text(&redirect.target);
                    redirected.reads.push(file.clone());
                    redirected.writes.push(file);
                }
                RedirectOp::Duplicate => {
                    let target = self.text(&redirect.target);
                    let descriptor = target.s.trim_end_matches('-');
                    if !descriptor.chars().all(|c| c.is_ascii_digit()) {
                        redirected.writes.push(target);
                    }
                }
            }
        }
        redirected
    }

    fn simple(&mut self, simple: &Simple, redirected: Redirected, input: Flow) -> Flow {
        let mut assigns = Vec::new();
        for assign in &simple.assigns {
            let value = self.assign(assign);
            assigns.push((assign.name.clone(), value));
        }
        let mut words = Vec::new();
        for word in &simple.words {
            words.append(&mut self.fields(word));
            if words.len() > super::MOST_WORDS {
                self.doubt("it has too many words to follow");
                words.truncate(super::MOST_WORDS);
                break;
            }
        }
        self.run(Effective {
            words,
            assigns,
            writes: redirected.writes,
            reads: redirected.reads,
            input,
            cwd: self.cwd.clone(),
            via: self.via.clone(),
            transparent: false,
            unseen: self.unseen,
        })
    }

    fn assign(&mut self, assign: &Assign) -> Text {
        if let Some(word) = &assign.inside {
            self.text(word);
        }
        match &assign.value {
            AssignValue::Array(words) => {
                let mut items = Vec::new();
                for word in words {
                    items.append(&mut self.fields(word));
                }
                let kept = self.arrays.entry(assign.name.clone()).or_default();
                if !assign.append {
                    kept.clear();
                }
                kept.append(&mut items);
                Text::default()
            }
            AssignValue::Scalar(word) => {
                let mut value = self.text(word);
                if let Some(index) = &assign.index {
                    self.assign_item(&assign.name, index, value.clone());
                    return value;
                }
                if assign.append
                    && let Some(before) = self.variable(&assign.name)
                {
                    let mut joined = before;
                    joined.push(&value);
                    value = joined;
                }
                let name = self.meant(&assign.name).to_owned();
                self.vars.insert(name, value.clone());
                value
            }
        }
    }

    fn assign_item(&mut self, name: &str, index: &str, value: Text) {
        self.vars.insert(format!("{name}[{index}]"), value.clone());
        if let Ok(at) = index.parse::<usize>()
            && at < 256
        {
            let items = self.arrays.entry(name.to_owned()).or_default();
            if items.len() <= at {
                items.resize(at + 1, Text::default());
            }
            items[at] = value;
        }
    }

    fn for_loop(
        &mut self,
        name: &str,
        words: Option<&[Word]>,
        body: &Script,
        input: &Flow,
    ) -> Flow {
        let mut items = Vec::new();
        for word in words.unwrap_or_default() {
            items.append(&mut self.fields(word));
        }
        if words.is_none() {
            items = vec![Text::unknown(Taint::ARGUMENT)];
        } else if items.is_empty() || items.len() > MOST_ROUNDS {
            items = vec![summary(&items)];
        }
        let mut output = Flow::known("");
        for item in items {
            self.vars.insert(name.to_owned(), item);
            let flow = self.script(body, input);
            output = output.then(flow, super::LONGEST_TEXT);
        }
        output
    }

    /// A body is judged where it is defined: a persistent shell may call it later.
    fn define(&mut self, name: &str, body: &Rc<Script>) -> Flow {
        if bombs(body, name) {
            self.find(Finding::floor(
                Category::ForkBomb,
                "a function that starts itself again and again (fork bomb)",
            ));
            return Flow::known("");
        }
        self.functions.insert(name.to_owned(), Rc::clone(body));
        let outer = self.deferred.replace(Vec::new());
        let kept = (self.vars.clone(), self.arrays.clone(), self.cwd.clone());
        let args = self.positional.take();
        self.calls.push(name.to_owned());
        let body = Rc::clone(body);
        self.below(name, |walker| {
            walker.script(&body, &Flow::unknown(Taint::NONE))
        });
        self.calls.pop();
        self.positional = args;
        (self.vars, self.arrays, self.cwd) = kept;
        let found = std::mem::replace(&mut self.deferred, outer).unwrap_or_default();
        self.uncalled.insert(name.to_owned(), found);
        Flow::known("")
    }
}

/// `nc -l 1 < p | sh > p`, in either order: a shell that nobody types into, and a connection.
fn connects_a_shell(pipeline: &Pipeline) -> bool {
    let mut shell = false;
    let mut connection = false;
    for stage in &pipeline.stages {
        let Kind::Simple(simple) = &stage.kind else {
            continue;
        };
        let words: Vec<&str> = simple.words.iter().filter_map(Word::as_plain).collect();
        let Some(first) = words.first() else {
            continue;
        };
        let name = crate::effective::base_name(first);
        let bare = words
            .iter()
            .skip(1)
            .all(|word| matches!(*word, "-i" | "-s" | "-l" | "-li" | "-"));
        shell |= super::shells::is_shell(name) && bare;
        connection |= matches!(
            name,
            "nc" | "ncat" | "netcat" | "telnet" | "socat" | "websocat"
        ) || name == "openssl" && words.contains(&"s_client")
            || name == "busybox" && words.contains(&"nc");
    }
    shell && connection
}

/// Whether a program tells only how much comes in, or a number made of it.
fn counts(node: &Node) -> bool {
    let Kind::Simple(simple) = &node.kind else {
        return false;
    };
    let words: Vec<&str> = simple.words.iter().filter_map(Word::as_plain).collect();
    match words.as_slice() {
        [
            "wc" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "cksum" | "b2sum",
            ..,
        ] => true,
        ["grep" | "egrep" | "fgrep", rest @ ..] => rest.iter().any(|word| {
            word.starts_with('-') && !word.starts_with("--") && word.contains(['q', 'c'])
        }),
        _ => false,
    }
}

/// One text for more items than are followed one by one.
fn summary(items: &[Text]) -> Text {
    const EVERY_NUMBER: usize = 200;
    let mut taint = Taint::NONE;
    for item in items {
        taint = taint | item.taint;
    }
    let number = |item: &Text| !item.s.is_empty() && item.s.bytes().all(|b| b.is_ascii_digit());
    let name = |item: &Text| {
        !item.is_unbounded() && !item.s.contains('/') && !item.s.starts_with(['.', '-'])
    };
    if items.is_empty() {
        return Text::unknown(taint);
    }
    if items.iter().all(number) && items.len() >= EVERY_NUMBER {
        taint = taint | Taint::EVERY_PROCESS;
    }
    if items.iter().all(name) {
        return Text::shaped(&Shape::Names, taint);
    }
    Text::unknown(taint)
}

fn flow_of(text: &Text) -> Flow {
    if !text.is_unbounded() {
        Flow {
            known: Some(text.s.clone()),
            taint: text.taint,
            present: true,
            ..Flow::default()
        }
    } else {
        Flow::unknown(text.taint)
    }
}

/// `$0 | $0 &`
fn runs_itself(node: &Node) -> bool {
    let Kind::Simple(simple) = &node.kind else {
        return false;
    };
    simple
        .words
        .first()
        .is_some_and(|word| match word.0.as_slice() {
            [Part::Param(param)] => param.name == "0",
            [Part::Double(parts)] => {
                matches!(parts.as_slice(), [Part::Param(param)] if param.name == "0")
            }
            _ => false,
        })
        && simple.words.len() == 1
}

/// Whether the body calls its own name in a pipeline, twice, or in the background.
fn bombs(body: &Script, name: &str) -> bool {
    let mut calls = 0;
    let mut multiplies = false;
    count_calls(body, name, false, &mut calls, &mut multiplies);
    multiplies && calls > 0
}

fn count_calls(
    script: &Script,
    name: &str,
    within: bool,
    calls: &mut usize,
    multiplies: &mut bool,
) {
    for pipeline in &script.pipelines {
        let parallel = within || pipeline.background || pipeline.stages.len() > 1;
        for stage in &pipeline.stages {
            match &stage.kind {
                Kind::Simple(simple) => {
                    let called = simple.words.first().and_then(Word::as_plain) == Some(name);
                    if called {
                        *calls += 1;
                        *multiplies |= parallel;
                    }
                }
                Kind::Subshell(script) => count_calls(script, name, parallel, calls, multiplies),
                Kind::Group(scripts) => {
                    for script in scripts {
                        count_calls(script, name, parallel, calls, multiplies);
                    }
                }
                Kind::For { body, .. } => count_calls(body, name, parallel, calls, multiplies),
                _ => {}
            }
        }
    }
}
