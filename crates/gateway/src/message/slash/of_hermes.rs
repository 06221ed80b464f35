//! What is said to somebody who wrote a command that we do not have.

use super::{COMMANDS, ChatCommand};

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

impl ChatCommand {
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let page = include_str!("../../../../../docs/hermes-parity.md");
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
}
