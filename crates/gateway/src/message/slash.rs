//! Slash commands, read from a message.

/// A command we know. What only looks like one is a message like any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    /// `/reset` is another name for it, as in Hermes.
    New,
    /// `/new forget`: what was said is not kept.
    Forget,
    /// Destroys the sandbox; what was written after it.
    Destroy(String),
    Stop,
    Status,
    Sh(String),
    Py(String),
    /// What today took.
    Usage,
    /// Which model answers here, and which shall.
    Model(String),
    /// Who answers here, and who shall.
    Agent(String),
    /// Shows or chooses a mode of somebody else's agent.
    Mode(String),
    /// Summarises what was said; `/compress` is another name for it, as in Hermes.
    Compact,
    /// Takes the last turn back.
    Undo,
    /// Takes the last turn once more.
    Retry,
    /// What was said before the conversation started afresh.
    Sessions,
    /// Goes on with one of those.
    Resume(String),
    /// What lies in a folder of the workspace.
    Files(String),
    /// Where commands run.
    Sandbox,
    /// What can be reached from there.
    Egress,
    /// What is remembered of whoever asks.
    Memory(String),
    /// The skills there are.
    Skills,
    /// Jobs on a schedule; what to do with them.
    Cron(String),
    /// Lifts a budget; whose.
    Lift(String),
    Whoami,
    Version,
    Help,
    Approve(String),
    Deny(String),
    /// The name of one that nobody has.
    Unknown(String),
}

/// Commands of Hermes that are not here, for people who have them in their fingers, and what to do instead.
const OF_HERMES: [(&str, &str); 44] = [
    ("agents", AT_WORK),
    ("background", LATER),
    ("bg", LATER),
    ("blueprint", "/cron add makes a job"),
    ("bp", "/cron add makes a job"),
    ("branch", SESSIONS),
    ("btw", LATER),
    (
        "bundles",
        "a skill is called by its own name; /skills lists them",
    ),
    ("busy", WHILE_AT_WORK),
    ("codex_runtime", "/agent says which agents can answer"),
    ("curator", "skills are kept up by people"),
    ("debug", OF_OPERATOR),
    ("fast", "/model says which models can answer"),
    ("footer", "/usage tells what was used"),
    ("fork", SESSIONS),
    ("goal", "say it in your message"),
    ("insights", OF_OPERATOR),
    (
        "kanban",
        "the operator can connect a tracker as an MCP server",
    ),
    ("learn", "ask me to write a skill; a person reviews it"),
    ("moa", "one model answers; /model says which"),
    ("personality", OF_OPERATOR),
    ("platform", OF_OPERATOR),
    ("platforms", OF_OPERATOR),
    ("profile", OF_OPERATOR),
    ("q", WHILE_AT_WORK),
    ("queue", WHILE_AT_WORK),
    ("reasoning", OF_OPERATOR),
    ("reload_mcp", OF_OPERATOR),
    ("reload_skills", "skills are read anew each time"),
    ("restart", OF_OPERATOR),
    ("rollback", "/undo goes back by one turn"),
    ("set_home", OF_OPERATOR),
    ("sethome", OF_OPERATOR),
    ("steer", WHILE_AT_WORK),
    ("subgoal", "say it in your message"),
    ("suggest", "/cron add makes a job"),
    ("suggestions", "/cron add makes a job"),
    ("tasks", AT_WORK),
    (
        "title",
        "a session is named after its first words; /sessions lists them",
    ),
    ("topic", "each topic is a conversation of its own"),
    ("topup", OF_OPERATOR),
    ("update", OF_OPERATOR),
    (
        "voice",
        "voice messages are understood; ask me if I shall speak",
    ),
    ("yolo", "nothing switches questions off from a chat"),
];

const AT_WORK: &str = "/status says what is at work";
const LATER: &str = "ask me to hand parts of the work on, or have it done later by /cron add";
const OF_OPERATOR: &str = "that is for the operator, at the command line or on the dashboard";
const SESSIONS: &str = "/new and /resume go from one session to another";
const WHILE_AT_WORK: &str = "the operator says what a message does while I am at work";

/// No command has a longer name.
const LONGEST_NAME: usize = 32;

/// A command as people are told of it, for platforms that list them.
#[derive(Clone, Copy, Debug)]
pub struct CommandDescription {
    pub name: &'static str,
    pub about: &'static str,
    pub argument: Option<ArgumentDescription>,
}

/// What is written behind a command.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentDescription {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    /// Words that are often meant.
    pub words: &'static [&'static str],
}

/// Every command that we know, but for second names.
pub const COMMANDS: &[CommandDescription] = {
    const fn command(
        name: &'static str,
        about: &'static str,
        argument: Option<ArgumentDescription>,
    ) -> CommandDescription {
        CommandDescription {
            name,
            about,
            argument,
        }
    }
    const fn needs(name: &'static str, about: &'static str) -> Option<ArgumentDescription> {
        Some(ArgumentDescription {
            name,
            about,
            required: true,
            words: &[],
        })
    }
    const fn takes(
        name: &'static str,
        about: &'static str,
        words: &'static [&'static str],
    ) -> Option<ArgumentDescription> {
        Some(ArgumentDescription {
            name,
            about,
            required: false,
            words,
        })
    }
    &[
        command("help", "What you can write here", None),
        command(
            "sh",
            "Run a shell command in the sandbox, without the model",
            needs("command", "What to run"),
        ),
        command(
            "py",
            "Run Python in the sandbox, without the model",
            needs("code", "What to run"),
        ),
        command("stop", "Interrupt what is running", None),
        command(
            "new",
            "Start afresh; files stay",
            takes(
                "forget",
                "forget, to have what was ever said here deleted",
                &["forget"],
            ),
        ),
        command("undo", "Take back the last turn and its files", None),
        command("retry", "Answer the last message once more", None),
        command("compact", "Summarise what was said, to make room", None),
        command(
            "sessions",
            "What was said here before it started afresh",
            None,
        ),
        command(
            "resume",
            "Go on with an earlier session of this chat",
            takes("session", "Its name, as /sessions lists it", &[]),
        ),
        command(
            "files",
            "What is in the workspace",
            takes("folder", "A folder in it", &[]),
        ),
        command("sandbox", "Where commands run", None),
        command("egress", "What can be reached from there", None),
        command(
            "destroy",
            "Destroy the sandbox with its files; asks first",
            takes("answer", "yes, to say that you mean it", &["yes"]),
        ),
        command("status", "What goes on in this conversation", None),
        command("usage", "What you and this conversation used today", None),
        command(
            "model",
            "Which model answers here, or another one",
            takes("name", "A model of this gateway, or default", &["default"]),
        ),
        command(
            "agent",
            "Which agent answers here, or another one",
            takes(
                "name",
                "An agent of this gateway, hermetic, or default",
                &["hermetic", "default"],
            ),
        ),
        command(
            "mode",
            "How another agent works here",
            takes("name", "A mode of the agent, or default", &["default"]),
        ),
        command(
            "memory",
            "What I remember of you, or of this group",
            takes(
                "what",
                "pending, approve ID, reject ID or remove TEXT",
                &["pending"],
            ),
        ),
        command("skills", "What I know how to do", None),
        command(
            "cron",
            "Your jobs on a schedule",
            takes(
                "what",
                "add, show, pause, resume, run or remove",
                &["add", "show", "pause", "resume", "run", "remove"],
            ),
        ),
        command("whoami", "Who you are here", None),
        command("version", "Which version answers here", None),
        command(
            "approve",
            "Say yes to a question",
            takes(
                "which",
                "Its name, and session if for longer than once",
                &["session", "all"],
            ),
        ),
        command(
            "deny",
            "Say no to a question",
            takes("which", "Its name, and a reason", &["all"]),
        ),
        command(
            "lift",
            "Lift a budget once for today",
            needs("budget", "person, conversation or all, and a name"),
        ),
    ]
};

impl ChatCommand {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let words = text.trim().strip_prefix('/')?;
        let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        // In a group people write `/status@OurBot`; whether it is for us was decided before.
        let name = name.split('@').next().unwrap_or(name).to_ascii_lowercase();
        let rest = rest.trim();
        Some(match name.as_str() {
            // Only this very word: anything else behind `/new` keeps what was said, because
            // forgetting cannot be undone.
            "new" | "reset" if rest.eq_ignore_ascii_case("forget") => Self::Forget,
            "new" | "reset" => Self::New,
            "destroy" => Self::Destroy(rest.to_owned()),
            "stop" => Self::Stop,
            "status" => Self::Status,
            "sh" => Self::Sh(rest.to_owned()),
            "py" => Self::Py(rest.to_owned()),
            "usage" => Self::Usage,
            "model" => Self::Model(rest.to_owned()),
            "agent" => Self::Agent(rest.to_owned()),
            "mode" => Self::Mode(rest.to_owned()),
            "compact" | "compress" => Self::Compact,
            "undo" => Self::Undo,
            "retry" => Self::Retry,
            "sessions" => Self::Sessions,
            "resume" => Self::Resume(rest.to_owned()),
            "files" => Self::Files(rest.to_owned()),
            "sandbox" => Self::Sandbox,
            "egress" => Self::Egress,
            "memory" => Self::Memory(rest.to_owned()),
            "skills" => Self::Skills,
            "cron" => Self::Cron(rest.to_owned()),
            "lift" => Self::Lift(rest.to_owned()),
            "whoami" => Self::Whoami,
            "version" | "v" => Self::Version,
            "help" | "start" | "commands" => Self::Help,
            "approve" => Self::Approve(rest.to_owned()),
            "deny" => Self::Deny(rest.to_owned()),
            _ => return None,
        })
    }

    /// A message that is written as a command and is none: `/stauts`. A path is none, nor is what has a
    /// slash elsewhere.
    pub(crate) fn unknown(text: &str) -> Option<Self> {
        let first = text.split_whitespace().next()?.strip_prefix('/')?;
        let name = first.split('@').next().unwrap_or(first);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.len() <= LONGEST_NAME
            && name.chars().all(plain);
        is_name.then(|| Self::Unknown(name.to_ascii_lowercase()))
    }

    /// What to say to somebody who wrote a command that is none.
    pub(crate) fn instead_of(name: &str) -> String {
        let near = COMMANDS.iter().map(|command| command.name);
        let near = near.map(|known| (strsim::osa_distance(name, known), known));
        let near = near.min().filter(|(distance, known)| {
            *distance <= known.len() / 3 + 1 && *distance < known.len()
        });
        let plain = name.replace('-', "_");
        if let Some((_, instead)) = OF_HERMES.iter().find(|(known, _)| *known == plain) {
            return format!("/{name} is a command of Hermes that is not here: {instead}.");
        }
        let what = format!("There is no command /{name}.");
        let instead = match near {
            Some((_, known)) => format!(" Did you mean /{known}?"),
            None => String::new(),
        };
        format!(
            "{what}{instead} /help lists what you can write. If it was meant for the agent, begin with another word."
        )
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::New | Self::Forget => "new",
            Self::Destroy(_) => "destroy",
            Self::Stop => "stop",
            Self::Status => "status",
            Self::Sh(_) => "sh",
            Self::Py(_) => "py",
            Self::Usage => "usage",
            Self::Model(_) => "model",
            Self::Agent(_) => "agent",
            Self::Mode(_) => "mode",
            Self::Compact => "compact",
            Self::Undo => "undo",
            Self::Retry => "retry",
            Self::Sessions => "sessions",
            Self::Resume(_) => "resume",
            Self::Files(_) => "files",
            Self::Sandbox => "sandbox",
            Self::Egress => "egress",
            Self::Memory(_) => "memory",
            Self::Skills => "skills",
            Self::Cron(_) => "cron",
            Self::Lift(_) => "lift",
            Self::Whoami => "whoami",
            Self::Version => "version",
            Self::Help => "help",
            Self::Approve(_) => "approve",
            Self::Deny(_) => "deny",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Whether running it once more after a crash does no harm.
    pub(crate) fn may_be_repeated(&self) -> bool {
        !matches!(
            self,
            Self::Sh(_) | Self::Py(_) | Self::Undo | Self::Resume(_) | Self::Cron(_)
        )
    }

    /// Whether it changes what was said, so that no turn may be at work meanwhile.
    pub(crate) fn takes_a_turn(&self) -> bool {
        matches!(
            self,
            Self::Compact | Self::Undo | Self::Retry | Self::Resume(_)
        )
    }

    /// Whether a model is asked for it, which takes a position like any turn.
    pub(crate) fn asks_model(&self) -> bool {
        matches!(self, Self::Compact | Self::Retry)
    }

    /// Whether it runs something in the sandbox. Those of one conversation run one after the other, and
    /// each needs a permit like a turn.
    pub(crate) fn works(&self) -> bool {
        matches!(self, Self::Sh(_) | Self::Py(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_listed_is_one() {
        for listed in COMMANDS {
            let read = ChatCommand::read(&format!("/{} x", listed.name));
            assert_eq!(read.as_ref().map(ChatCommand::name), Some(listed.name));
        }
    }

    #[test]
    fn what_is_written_as_a_command_and_is_none_is_answered_with_the_nearest() {
        let meant = |text: &str| match ChatCommand::unknown(text) {
            Some(ChatCommand::Unknown(name)) => ChatCommand::instead_of(&name),
            other => panic!("{text}: {other:?}"),
        };
        assert!(meant("/stauts").contains("Did you mean /status?"));
        assert!(meant("/HELPP@OurBot me").contains("/helpp. Did you mean /help?"));
        assert!(meant("/yolo it").starts_with("/yolo is a command of Hermes"));
        assert!(!meant("/xylophone").contains("Did you mean"));
        for text in [
            "/etc/passwd is a file",
            "a /stauts",
            "/",
            "//sh",
            "/1st",
            "/a.b",
            "",
        ] {
            assert_eq!(ChatCommand::unknown(text), None, "{text:?}");
        }
        for (hermes, _) in OF_HERMES {
            assert_eq!(
                ChatCommand::read(&format!("/{hermes}")),
                None,
                "{hermes} is here"
            );
        }
    }

    /// What Hermes 0.19 lists on Telegram.
    const ON_TELEGRAM: [&str; 52] = [
        "start",
        "new",
        "topic",
        "retry",
        "undo",
        "title",
        "branch",
        "compress",
        "rollback",
        "stop",
        "approve",
        "deny",
        "background",
        "agents",
        "queue",
        "steer",
        "goal",
        "moa",
        "subgoal",
        "status",
        "whoami",
        "profile",
        "sethome",
        "resume",
        "sessions",
        "model",
        "codex_runtime",
        "personality",
        "footer",
        "yolo",
        "reasoning",
        "fast",
        "voice",
        "memory",
        "bundles",
        "learn",
        "suggestions",
        "blueprint",
        "curator",
        "kanban",
        "reload_mcp",
        "reload_skills",
        "commands",
        "help",
        "restart",
        "usage",
        "topup",
        "insights",
        "platform",
        "update",
        "version",
        "debug",
    ];

    /// The rows of the page's second table: the names in the first cell, and what the second says.
    fn told_on_the_page() -> Vec<(Vec<String>, String)> {
        let page = include_str!("../../../../docs/hermes-parity.md");
        let (_, table) = page.split_once("## Commands").unwrap();
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let read = rows.map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let names = cells[1].split(", ");
            let names = names.map(|name| name.trim_matches(['`', '/']).to_owned());
            (names.collect(), cells[2].to_owned())
        });
        read.collect()
    }

    #[test]
    fn the_page_tells_of_every_command_of_hermes_what_became_of_it() {
        let rows = told_on_the_page();
        let first: Vec<_> = rows.iter().map(|(names, _)| names[0].as_str()).collect();
        assert_eq!(first, ON_TELEGRAM);
        for (name, here) in rows
            .iter()
            .flat_map(|(names, here)| names.iter().map(move |name| (name, here.as_str())))
        {
            let is_here = ChatCommand::read(&format!("/{name}")).is_some();
            let is_told = OF_HERMES.iter().any(|(known, _)| known == name);
            let expected = match here {
                "there" | "different" => (true, false),
                "not here" => (false, true),
                other => panic!("/{name}: {other:?}"),
            };
            assert_eq!((is_here, is_told), expected, "/{name}: {here}");
        }
    }

    #[test]
    fn the_page_names_every_command_that_is_here() {
        let page = include_str!("../../../../docs/hermes-parity.md");
        for command in COMMANDS {
            let name = format!("`/{}`", command.name);
            assert!(page.contains(&name), "{name}");
        }
    }

    #[test]
    fn commands_are_read_as_people_write_them() {
        assert_eq!(
            ChatCommand::read("/sh ls -l\n"),
            Some(ChatCommand::Sh("ls -l".to_owned()))
        );
        assert_eq!(
            ChatCommand::read("/SH\nls"),
            Some(ChatCommand::Sh("ls".to_owned()))
        );
        assert_eq!(
            ChatCommand::read("/status@OurBot"),
            Some(ChatCommand::Status)
        );
        assert_eq!(ChatCommand::read("/start"), Some(ChatCommand::Help));
        assert_eq!(ChatCommand::read("/reset"), Some(ChatCommand::New));
        assert_eq!(ChatCommand::read("/new x"), Some(ChatCommand::New));
        assert_eq!(ChatCommand::read("/new Forget"), Some(ChatCommand::Forget));
        let confirmed = ChatCommand::Destroy("yes".to_owned());
        assert_eq!(ChatCommand::read("/destroy  yes "), Some(confirmed));
        for text in [
            "/etc/passwd is a file",
            "/shell x",
            "sh ls",
            "/",
            "",
            "//sh",
        ] {
            assert_eq!(ChatCommand::read(text), None, "{text:?}");
        }
    }
}
