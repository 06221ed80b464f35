//! `agent.acp`: agents of others, beside what Hermes has in the same section.

use crate::lab::Lab;

#[test]
fn an_agent_is_a_name_a_command_or_several_of_both() {
    let config = Lab::with("agent: {acp: Claude, max_turns: 7}\n").config();
    assert_eq!(config.acp_agents()[0].name, "claude");
    assert_eq!(config.acp_agents()[0].command, None);
    assert_eq!(config.agent().max_turns, 7);

    let own = "agent:\n  acp:\n    command: [/opt/mine/agent, --acp]\n    env: {A: b}\n    hosts: [api.test]\n";
    let config = Lab::with(own).config();
    let agent = &config.acp_agents()[0];
    assert_eq!(agent.name, "agent", "after its program");
    let command = agent.command.as_ref().expect("a command");
    assert_eq!(command, &["/opt/mine/agent", "--acp"]);
    assert_eq!(
        (agent.settings.env["A"].as_str(), &agent.settings.hosts[..]),
        ("b", &["api.test".to_owned()][..])
    );

    let tuned = "agent: {acp: {name: claude, model: opus, hosts: [docs.test]}}\n";
    let agent = Lab::with(tuned).config().acp_agents()[0].clone();
    assert_eq!((agent.command, agent.settings.hosts.len()), (None, 1));
    assert_eq!(agent.settings.model.as_deref(), Some("opus"));

    let several = "agent: {acp: [{name: one, command: [a]}, {name: two}]}\n";
    let names: Vec<_> = Lab::with(several)
        .config()
        .acp_agents()
        .iter()
        .map(|one| one.name.clone())
        .collect();
    assert_eq!(names, ["one", "two"]);
    assert!(Lab::new().config().acp_agents().is_empty());
    let platform = Lab::with("platforms: {telegram: {agent: Claude}}\n").config();
    assert_eq!(
        platform.platforms().telegram.platform.agent.as_deref(),
        Some("claude")
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_to_write() {
    for (text, why) in [
        ("agent: {acp: {env: {A: b}}}\n", "write `name:`"),
        (
            "agent: {acp: {name: claude, env: {ANTHROPIC_API_KEY: k}}}\n",
            "looks like a secret",
        ),
        (
            "agent: {acp: {name: hermetic, hosts: [a.test]}}\n",
            "is our own",
        ),
        (
            "agent: {acp: {name: hermetic, command: [a]}}\n",
            "is our own agent",
        ),
        (
            "agent: {acp: [{name: a}, {name: A}]}\n",
            "two agents are called",
        ),
        (
            "agent: {acp: {name: 'a b', command: [a]}}\n",
            "write `name:`",
        ),
        (
            "agent: {acp: {command: [a, --api-key=k123456]}}\n",
            "gateway.egress.credentials",
        ),
        (
            "agent: {acp: {command: [a], env: {ANTHROPIC_API_KEY: k}}}\n",
            "looks like a secret",
        ),
        (
            "agent: {acp: {command: [a], hosts: ['https://a.test/x']}}\n",
            "is not a host",
        ),
    ] {
        let errors = Lab::with(text).errors();
        assert!(errors.contains(why), "{text}: {errors}");
    }
    let spelled = "agent: {acp: {command: [a], env: {A_TOKEN: k}, expose_env: [A_TOKEN]}}\n";
    assert_eq!(Lab::with(spelled).config().acp_agents().len(), 1);
}
