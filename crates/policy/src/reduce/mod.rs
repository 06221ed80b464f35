//! From a tree to the commands that would really run.
//!
//! The walker goes through the text as a shell would, with what can be known filled in and holes
//! where only running would tell. It follows every branch once. Work is bounded: whoever writes
//! more than the budget allows is asked about.

mod arithmetic;
mod assign;
mod brace;
mod branches;
mod builds;
mod builtins;
mod carried;
mod codes;
mod decode;
mod environment;
pub(crate) mod escapes;
mod expand;
mod files;
pub(crate) mod glob;
pub(crate) mod listing;
mod literals;
mod locals;
mod loops;
mod nodes;
mod output;
mod pipelines;
mod reading;
mod redirects;
mod run;
mod shape;
mod shells;
mod substitutions;
mod variables;
mod wrap_remote;
mod wrappers;

pub(crate) use environment::is_relied_on;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::context::JudgementContext;
use crate::effective::ReducedCommand;
use crate::finding::{HarmFinding, HarmSeverity};
use crate::syntax::{self, ShellScript};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

const STEPS: usize = 700;
const MOST_WORDS: usize = 512;
const DEPTH: usize = 24;
const LONGEST_TEXT: usize = 16 * 1024;
const TEXT_BUDGET: usize = 256 * 1024;

/// All that was understood of a command.
#[derive(Debug, Default)]
pub(crate) struct ReducedScript {
    pub(crate) commands: Vec<ReducedCommand>,
    pub(crate) findings: Vec<HarmFinding>,
    /// What could not be understood.
    pub(crate) doubts: Vec<String>,
}

/// `cwd` is where the command starts, where that is not the workspace.
pub(crate) fn reduce(
    script: &ShellScript,
    context: &JudgementContext,
    input: &ByteFlow,
    cwd: Option<String>,
) -> ReducedScript {
    let mut walker = ScriptWalker::new(context);
    walker.cwd = cwd;
    walker.script(script, input);
    walker.done()
}

/// Words that no shell looks at.
pub(crate) fn reduce_words(
    words: &[String],
    context: &JudgementContext,
    input: ByteFlow,
    cwd: Option<String>,
) -> ReducedScript {
    let mut walker = ScriptWalker::new(context);
    walker.cwd.clone_from(&cwd);
    walker.run(ReducedCommand {
        words: words.iter().map(ExpandedText::known).collect(),
        input,
        cwd,
        ..ReducedCommand::default()
    });
    walker.done()
}

pub(crate) struct ScriptWalker<'a> {
    pub(crate) context: &'a JudgementContext,
    vars: Rc<HashMap<String, ExpandedText>>,
    /// Values that a variable still has if some branch was not taken.
    older: Rc<HashMap<String, Vec<ExpandedText>>>,
    /// Variables that had more older values than are kept.
    lost: Rc<HashSet<String>>,
    /// Which of its values each variable has in this walk; the last ones if none are named.
    reading: Option<HashMap<String, ExpandedText>>,
    /// Variables with older values that the words of a command have met.
    met_older: RefCell<BTreeSet<String>>,
    /// Where the loop or the function that is walked may have been left.
    jumps: Vec<branches::LoopJump>,
    /// For each function that is being called.
    locals: Vec<locals::FunctionLocals>,
    /// How often a variable got another value.
    changes: usize,
    /// Inside how many parts of the text that may not run.
    branches: usize,
    /// Inside how many loops whose rounds are not counted.
    rounds: usize,
    /// Arrays that are one of two, so that no item has a place of its own.
    mixed: Rc<HashSet<String>>,
    /// Variables whose values the shell changes: `declare -l`.
    transformed: HashSet<String>,
    arrays: Rc<HashMap<String, Vec<ExpandedText>>>,
    /// `declare -n`: names that stand for another.
    references: HashMap<String, String>,
    functions: HashMap<String, Rc<ShellScript>>,
    /// Functions whose definition may not have happened.
    uncertain: HashSet<String>,
    aliases: HashMap<String, String>,
    positional: Option<Vec<ExpandedText>>,
    /// What `<( … )` would deliver, by number.
    processes: Vec<ByteFlow>,
    /// What was written to a file by the same text, by absolute path.
    files: HashMap<String, ByteFlow>,
    cwd: Option<String>,
    via: Vec<String>,
    calls: Vec<String>,
    steps: usize,
    depth: usize,
    text_spent: usize,
    /// Inside a container of the command's own: the host is not what is hit.
    contained: bool,
    /// Somebody else reads what is printed.
    piped: bool,
    /// What is printed is only counted.
    unseen: bool,
    /// What is to run when the shell or a subshell ends.
    traps: Vec<ExpandedText>,
    /// Inside a function's definition: what is only found because its arguments are not known yet.
    deferred: Option<Vec<HarmFinding>>,
    /// The same, for each function that nobody has called so far.
    uncalled: HashMap<String, Vec<HarmFinding>>,
    reduced: ReducedScript,
}

impl<'a> ScriptWalker<'a> {
    fn new(context: &'a JudgementContext) -> Self {
        Self {
            context,
            vars: Rc::default(),
            older: Rc::default(),
            lost: Rc::default(),
            reading: None,
            jumps: Vec::new(),
            locals: Vec::new(),
            met_older: RefCell::default(),
            changes: 0,
            branches: 0,
            rounds: 0,
            mixed: Rc::default(),
            transformed: HashSet::new(),
            arrays: Rc::default(),
            references: HashMap::new(),
            functions: HashMap::new(),
            uncertain: HashSet::new(),
            aliases: HashMap::new(),
            positional: None,
            processes: Vec::new(),
            files: HashMap::new(),
            cwd: None,
            via: Vec::new(),
            calls: Vec::new(),
            steps: 0,
            depth: 0,
            text_spent: 0,
            contained: false,
            piped: false,
            unseen: false,
            traps: Vec::new(),
            deferred: None,
            uncalled: HashMap::new(),
            reduced: ReducedScript::default(),
        }
    }

    /// Runs what was set to run at the end, with the variables as they are then.
    fn spring_traps(&mut self, from: usize) {
        if self.traps.len() <= from {
            return;
        }
        for action in self.traps.split_off(from).into_iter().take(16) {
            self.run_computed(&action, "trap", &ByteFlow::default());
        }
    }

    fn done(mut self) -> ReducedScript {
        self.spring_traps(0);
        // A persistent shell may call it later, with anything.
        for finding in std::mem::take(&mut self.uncalled).into_values().flatten() {
            self.find(finding);
        }
        self.reduced
    }

    /// Shell text found inside a command, such as the argument of `bash -c`.
    pub(crate) fn run_text(&mut self, text: &str, via: &str, input: &ByteFlow) -> ByteFlow {
        if self.depth >= DEPTH || self.steps >= STEPS {
            self.doubt("it is nested too deeply to follow");
            return ByteFlow::unknown(TaintSet::NONE);
        }
        // Reading it costs more than copying it.
        self.spend_text(4 * text.len());
        match syntax::parse(text) {
            Ok(script) => self.below(via, |walker| walker.script(&script, input)),
            Err(doubt) => {
                self.doubt(format!("the text for {via} cannot be read: {doubt}"));
                ByteFlow::unknown(TaintSet::NONE)
            }
        }
    }

    fn below<T>(&mut self, via: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        self.via.push(via.to_owned());
        let result = walk(self);
        self.via.pop();
        self.depth -= 1;
        result
    }

    pub(crate) fn find(&mut self, mut finding: HarmFinding) {
        if self.contained && finding.severity == HarmSeverity::Floor {
            finding.severity = HarmSeverity::Dangerous;
            finding.reason.push_str(" (inside a container)");
        }
        if self.reduced.findings.len() < 64 && !self.reduced.findings.contains(&finding) {
            self.reduced.findings.push(finding);
        }
    }

    pub(crate) fn doubt(&mut self, doubt: impl Into<String>) {
        let doubt = doubt.into();
        if self.reduced.doubts.len() < 16 && !self.reduced.doubts.contains(&doubt) {
            self.reduced.doubts.push(doubt);
        }
    }

    /// One more step, unless the budget is spent.
    fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps > STEPS || self.text_spent > TEXT_BUDGET {
            self.doubt("it does too much to follow");
            return false;
        }
        true
    }

    fn spend_text(&mut self, bytes: usize) {
        self.text_spent += bytes;
    }

    fn workdir(&self) -> &str {
        self.cwd.as_deref().unwrap_or(&self.context.workspace)
    }
}
