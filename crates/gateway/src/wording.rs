//! What we say ourselves, in one place.

use hermetic_agent::LengthNote;

/// What is said before an answer about the length of its conversation.
pub(crate) fn length(notes: &[LengthNote]) -> String {
    let mut text = String::new();
    for note in notes {
        match note {
            LengthNote::Summarised { messages } => text.push_str(&format!(
                "[This conversation has become long: I have summarised its first {messages} messages for \
                 myself. They are kept.]\n\n"
            )),
            LengthNote::NotSummarised { why } => text.push_str(&format!(
                "[This conversation has become long and was not summarised: {why}. Nothing is lost; it is \
                 tried again with your next message.]\n\n"
            )),
            LengthNote::LeftOut => text.push_str(
                "[This conversation is longer than the model can see: its oldest part was left out of this \
                 answer. It is kept; /compact summarises it.]\n\n",
            ),
        }
    }
    text
}

pub(crate) const BROKEN: &str =
    "Something went wrong here, and nothing more was done. The operator has been told.";
pub(crate) const TOO_OFTEN: &str = "This message was begun several times and each time the gateway ended in the middle of it. I have \
     given it up. Parts of it may have happened; look before you ask for it again.";
pub(crate) const NOT_REPEATED: &str = "The gateway was restarted while this ran. It may or may not have happened, so I did not run it \
     again. Look, and send it once more if it is still wanted.";
pub(crate) const POSSIBLE_DUPLICATE: &str =
    "♻ Possible duplicate: it is not known whether this arrived before.\n\n";
pub(crate) const RESUMED: &str = "[The gateway was restarted in the middle of this.]\n\n";
pub(crate) const CUT: &str =
    "[The gateway is being stopped. Write again when it is back, and I will go on.]";
pub(crate) const QUEUE_FULL: &str = "Too many messages wait in this conversation already, so neither this one nor those right after it are heard. Please send them again later, or /stop first.";
pub(crate) const TOO_MANY_AT_WORK: &str = "Too much of yours is at work and waits in your conversations already, so neither this message nor those right after it are heard. Please send them again later, or /stop some of it first; /status says how much there is.";
pub(crate) const DROPPED: &str = "Not run: this was stopped before its turn came.";
pub(crate) const NOT_FOR_YOU: &str =
    "This command is not for you here. /help and /whoami are; the operator says which others.";
pub(crate) const PAIRED: &str =
    "You are let in: from now on I answer you. /help says what I can do.";
pub(crate) const PAIRED_AS_OPERATOR: &str = "You are let in, and you are this bot's operator: what needs a yes, you can answer here with /approve and \
     /deny. /help says what I can do.";
pub(crate) const HELP: &str = "\
Write, and I answer. What I run, I run in a sandbox of this conversation alone.

/sh <command> - run a shell command there, without the model
/py <code> - run Python there, without the model
/stop - interrupt what is running, and drop the commands that wait for it
/new - start afresh; files stay, and what was said is kept (/reset is the same)
/new forget - start afresh, and delete all that was ever said here; files stay
/undo - take back your last message, my answer, and what it did to files and tasks
/retry - answer your last message once more; files stay as they are
/compact - summarise what was said, to make room (/compress is the same)
/sessions, /resume <name> - what was said here before, and go on with it
/destroy - destroy the sandbox with its files; asks first
/status - what goes on in this conversation
/usage - what you and this conversation used today
/model [name] - which model answers here, or let another one
/agent [name] - which agent answers here, or let another one
/mode [name] - how another agent than ours works here: plan, ask, edit, as it offers it
/files [folder], /sandbox, /egress - what is in the workspace, where commands run, what they reach
/memory - what I remember of you, or of this group; /memory remove <text> forgets an entry
/skills - what I know how to do; /<skill> has me do it
/whoami, /version - who you are to me, and which version I am
/approve [name] [session], /deny [name] [reason] - answer a question of mine
/cron - your jobs on a schedule
/lift - lift a budget once for today, for who may approve";
