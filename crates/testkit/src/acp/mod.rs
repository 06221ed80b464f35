//! An agent of somebody else's: a program that speaks the Agent Client Protocol, hostile on demand.

/// The program itself. The first word of a prompt says what it does: see the file.
pub const AGENT: &str = include_str!("agent.py");

/// How it is started, wherever there is a Python.
pub fn agent_command(options: &[&str]) -> Vec<String> {
    let words = ["python3", "-u", "-c", AGENT].into_iter();
    words
        .chain(options.iter().copied())
        .map(str::to_owned)
        .collect()
}
