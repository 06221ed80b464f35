//! Somebody else's agent answers: a real program, which does what its prompt says.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use hermetic_agent_programs::{AgentFolder, InstalledPrograms, ProgramBackend};
use hermetic_testkit::acp::{agent_command, put_in_place_of_opencode};
use hermetic_testkit::chat::Speech;
use hermetic_testkit::model::Reply;
use hermetic_types::{BackendKind, Secret};
use tokio::time::{sleep, timeout};

use crate::lab::{ALICE, BOB, Builder, Lab, has_sandboxes};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A gateway on which that agent answers, whose operator is Alice.
fn builder(options: &[&str], more: &str) -> Builder {
    let words = serde_json::to_string(&agent_command(options)).unwrap();
    let config = format!(
        "agent: {{acp: {{name: tester, command: {words}{more}}}}}\n\
         approvals: {{approvers: ['telegram:7']}}\n"
    );
    Lab::builder().config(&config)
}

async fn lab() -> Lab {
    builder(&[], "").start().await
}

/// Until the agent has told of its tool.
async fn until_at_work(lab: &Lab) {
    let told = async {
        while !lab.audit("agent_tool").contains("hard") {
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(PATIENCE, told).await.expect("the agent works");
}

/// Interrupts what runs; both answers are there.
async fn stop(lab: &Lab) {
    let before = lab.sent_to(ALICE);
    lab.says(ALICE, "/stop");
    let replies = lab.replies(ALICE, before + 2).await;
    let last = &replies[before..];
    assert!(last.iter().any(|one| one.contains("Stopped")), "{last:?}");
    assert!(
        last.iter().any(|one| one.contains("[Interrupted.]")),
        "{last:?}"
    );
}

#[tokio::test]
async fn a_message_is_answered_and_what_the_agent_says_that_it_does_is_recorded_as_its_word() {
    let lab = lab().await;
    assert_eq!(lab.ask(ALICE, "say it is done").await, "it is done");
    assert_eq!(lab.ask(ALICE, "tool ls -l").await, "Looked.");
    let noted = lab.audit("agent_tool");
    assert!(
        noted.contains(r#""agent":"tester""#) && noted.contains("ls -l"),
        "{noted}"
    );
    assert!(noted.contains(r#""state":"begun""#) && noted.contains(r#""state":"completed""#));
    // Its program was started by the operator's word, once for both.
    let started = lab.audit("command");
    assert_eq!(
        started
            .lines()
            .filter(|line| line.contains("python3"))
            .count(),
        1
    );
    assert!(lab.asked().is_empty(), "our own model was asked");
    // A secret of ours in a message does not reach it, nor one of its own words a chat.
    let told = lab.ask(ALICE, &format!("say {}", crate::lab::KEY)).await;
    assert!(!told.contains(crate::lab::KEY), "{told}");
}

#[tokio::test]
async fn what_an_agent_asks_is_answered_by_a_button() {
    let lab = lab().await;
    let question = lab.ask(ALICE, "ask remove the wall").await;
    assert!(
        question.contains("the agent asks whether it may"),
        "{question}"
    );
    assert!(question.contains("remove the wall") && question.contains("its sandbox holds it"));
    // The buttons are ours; what the agent makes of them stands beside them.
    assert!(
        question.contains("a yes is its “Yes”, a no is its “No”"),
        "{question}"
    );
    lab.chat().presses(ALICE, ALICE, "Allow once");
    let replies = lab.replies(ALICE, 2).await;
    assert!(
        replies.iter().any(|reply| reply == "it was yes"),
        "{replies:?}"
    );
    let answered = lab.audit("answered");
    assert!(answered.contains(r#""subject":"agent""#), "{answered}");
    // For the session: the same question is not asked again. The agent hears a yes for once each time, because
    // its own "always" may be wider than what was asked.
    lab.ask(ALICE, "ask paint it").await;
    lab.chat().presses(ALICE, ALICE, "This session");
    let replies = lab.replies(ALICE, 4).await;
    assert!(
        replies
            .iter()
            .filter(|reply| *reply == "it was yes")
            .count()
            == 2,
        "{replies:?}"
    );
    assert_eq!(lab.ask(ALICE, "ask paint it").await, "it was yes");
    // One that offers a yes for once alone has no button for longer.
    lab.ask(ALICE, "once burn it").await;
    let (_, buttons) = lab.chat().record().buttons(&ALICE.into());
    assert!(
        !buttons.iter().any(|(label, _)| label == "This session"),
        "{buttons:?}"
    );
    lab.chat().presses(ALICE, ALICE, "Deny");
    let replies = lab.replies(ALICE, 7).await;
    assert!(
        replies.iter().any(|reply| reply == "it was no"),
        "{replies:?}"
    );
}

#[tokio::test]
async fn a_stop_ends_what_runs_and_the_next_message_is_answered() {
    let lab = lab().await;
    lab.ask(ALICE, "remember the milk").await;
    lab.says(ALICE, "work hard");
    until_at_work(&lab).await;
    stop(&lab).await;
    // A tool was at work, so the program was ended with it; it finds its session again.
    assert_eq!(lab.ask(ALICE, "recall").await, "I remember: the milk");
    let started = lab.audit("command");
    assert_eq!(
        started
            .lines()
            .filter(|line| line.contains("python3"))
            .count(),
        2
    );
}

#[tokio::test]
async fn after_a_crash_the_session_goes_on_and_an_open_question_is_not_asked_twice() {
    let mut lab = lab().await;
    lab.ask(ALICE, "remember the milk").await;
    lab.crash_and_start().await;
    assert_eq!(lab.ask(ALICE, "recall").await, "I remember: the milk");
    // Killed while a person is asked: the message is taken up, and the answer counts.
    let question = lab.ask(ALICE, "ask go on").await;
    lab.crash();
    lab.start().await;
    let name = question
        .split("❓ ")
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    lab.says(ALICE, &format!("/approve {}", name.unwrap()));
    let answered = |record: &hermetic_testkit::chat::Record| {
        let messages = record.messages_in(&ALICE.into());
        messages
            .iter()
            .any(|message| message.text().contains("it was yes"))
    };
    lab.chat().wait_for("the answer", answered).await;
    let asked = lab.audit("asked");
    assert_eq!(asked.lines().count(), 1, "{asked}");
    // `/new` is a new session for the agent too.
    lab.ask(ALICE, "/new").await;
    assert_eq!(lab.ask(ALICE, "recall").await, "I remember: nothing");
}

#[tokio::test]
async fn one_that_does_not_find_its_session_says_so_once() {
    let mut lab = builder(&["--forgets"], "").start().await;
    lab.ask(ALICE, "remember the milk").await;
    lab.crash_and_start().await;
    let told = lab.ask(ALICE, "recall").await;
    assert!(told.contains("tester began a new session"), "{told}");
    assert!(told.ends_with("I remember: nothing"), "{told}");
    assert_eq!(lab.ask(ALICE, "recall").await, "I remember: nothing");
}

#[tokio::test]
async fn an_agent_that_dies_costs_its_turn_a_word_and_nothing_else() {
    let lab = lab().await;
    let told = lab.ask(ALICE, "die").await;
    assert!(
        told.contains("[tester ended") && told.contains("out of luck"),
        "{told}"
    );
    let told = lab.ask(ALICE, "garbage").await;
    assert!(
        told.contains("something else than the Agent Client Protocol"),
        "{told}"
    );
    let told = lab.ask(ALICE, "endless").await;
    assert!(told.contains("longer than any message may be"), "{told}");
    assert_eq!(lab.ask(BOB, "say meanwhile").await, "meanwhile");
    assert_eq!(lab.ask(ALICE, "say again").await, "again");
}

#[tokio::test]
async fn who_may_chooses_the_agent_of_a_conversation_and_the_choice_lasts() {
    let script = [
        Reply::streams(&["I am ours."]),
        Reply::streams(&["Still ours."]),
    ];
    let mut lab = builder(&[], "").script(script).start().await;
    let list = lab.ask(ALICE, "/agent").await;
    assert!(
        list.contains("here: tester") && list.contains("/agent hermetic"),
        "{list}"
    );
    let refused = lab.ask(BOB, "/agent hermetic").await;
    assert!(
        refused.contains("Only somebody who may approve"),
        "{refused}"
    );
    let unknown = lab.ask(ALICE, "/agent clod").await;
    assert!(
        unknown.contains("no agent called") && unknown.contains("tester"),
        "{unknown}"
    );
    let chosen = lab.ask(ALICE, "/agent hermetic").await;
    assert!(
        chosen.contains("From now on hermetic answers here"),
        "{chosen}"
    );
    assert_eq!(lab.ask(ALICE, "who are you?").await, "I am ours.");
    assert_eq!(
        lab.ask(BOB, "say hers alone").await,
        "hers alone",
        "chosen for one conversation"
    );
    lab.restart().await;
    assert_eq!(lab.ask(ALICE, "and now?").await, "Still ours.");
    lab.ask(ALICE, "/agent default").await;
    assert_eq!(lab.ask(ALICE, "say back").await, "back");
    let status = lab.ask(ALICE, "/status").await;
    assert!(status.contains("agent: tester"), "{status}");
}

#[tokio::test]
async fn on_a_backend_that_is_no_boundary_no_agent_of_others_runs() {
    let lab = builder(&[], "")
        .config("gateway: {terminal_backend: local}\n")
        .start()
        .await;
    let told = lab.ask(ALICE, "say hi").await;
    assert!(told.contains("does not run on the backend local"), "{told}");
    assert!(lab.audit("command").is_empty(), "something was started");
}

#[tokio::test]
async fn a_platform_may_have_an_agent_of_its_own() {
    let script = [Reply::streams(&["Ours answers on this one."])];
    let lab = builder(&[], "").config("platforms: {telegram: {agent: hermetic}}\n");
    let lab = lab.script(script).start().await;
    assert_eq!(
        lab.ask(ALICE, "who is it?").await,
        "Ours answers on this one."
    );
}

#[tokio::test]
async fn a_budget_is_asked_before_a_prompt_and_told_what_it_took() {
    let budgets = "budgets: {conversation: {tokens: 1000}}\n";
    let lab = builder(&["--usage"], "").config(budgets).start().await;
    assert_eq!(lab.ask(ALICE, "say one").await, "one");
    assert_eq!(lab.ask(ALICE, "say two").await, "two");
    let refused = lab.ask(ALICE, "say three").await;
    assert!(refused.contains("budget of this conversation"), "{refused}");
}

/// The same program in a real sandbox: what it runs, it runs there.
#[tokio::test]
async fn in_a_real_sandbox_an_agent_works_remembers_and_is_held() {
    if !has_sandboxes("in_a_real_sandbox_an_agent_works_remembers_and_is_held").await {
        return;
    }
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "of the host").unwrap();
    let lab = builder(&[], ", env: {GREETING: hello}").configured_backends();
    let mut lab = lab
        .config("terminal: {container_persistent: true}\n")
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "env GREETING").await, "GREETING=hello");
    assert_eq!(
        lab.ask(ALICE, "run echo from $((40 + 2))").await,
        "ran: from 42"
    );
    let tried = lab
        .ask(ALICE, &format!("run cat {}", secret.path().display()))
        .await;
    assert!(tried.contains("No such file"), "{tried}");
    // A host that is refused is told of while the agent is still at it.
    let refused = lab.ask(ALICE, "reach api.example.org").await;
    assert!(
        refused.contains("api.example.org:443 was not reached"),
        "{refused}"
    );
    stop(&lab).await;
    lab.ask(ALICE, "remember the milk").await;
    lab.crash_and_start().await;
    assert_eq!(lab.ask(ALICE, "recall").await, "I remember: the milk");
    // Ended with all that it started.
    lab.says(ALICE, "work hard");
    until_at_work(&lab).await;
    stop(&lab).await;
    // Its end is asked for and not waited for.
    let mut left = String::new();
    for _ in 0..20 {
        left = lab
            .ask(ALICE, "run cat /proc/[0-9]*/comm | sort | xargs")
            .await;
        if !left.contains("sleep") {
            return;
        }
    }
    panic!("{left}");
}

#[tokio::test]
async fn one_that_is_installed_or_updated_meanwhile_is_there_for_the_next_sandbox() {
    if !has_sandboxes("one_that_is_installed_or_updated_meanwhile_is_there").await {
        return;
    }
    let config = "agent: {acp: opencode}\n";
    let lab = Lab::builder().configured_backends().config(config);
    let mut lab = lab.start().await;
    // Some other one was installed before this start.
    let agents = lab.config().home().state().join("agents");
    fs::create_dir_all(&agents).unwrap();
    lab.restart().await;
    let missing = lab.ask(ALICE, "env VERSION").await;
    assert!(missing.contains("agents install opencode"), "{missing}");
    put_in_place_of_opencode(&agents, "1").unwrap();
    assert_eq!(lab.ask(ALICE, "env VERSION").await, "VERSION=1");
    put_in_place_of_opencode(&agents, "2").unwrap();
    assert_eq!(lab.ask(BOB, "env VERSION").await, "VERSION=2");
    // Hers goes on with the files that it began with.
    let look = "run grep -o VERSION=. /agents/opencode/node_modules/*/bin/opencode";
    assert_eq!(lab.ask(ALICE, look).await, "ran: VERSION=1");
    assert_eq!(lab.ask(BOB, look).await, "ran: VERSION=2");
}

#[tokio::test]
async fn where_nothing_can_be_shown_an_agent_is_copied_in_once_and_kept() {
    if !has_sandboxes("where_nothing_can_be_shown_an_agent_is_copied_in_once").await {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let folder = AgentFolder::in_state(state.path());
    put_in_place_of_opencode(folder.root(), "1").unwrap();
    // More than one piece, and other names than the program's.
    let large = vec![b'x'; 600_000];
    fs::write(folder.tree("opencode").join("large"), &large).unwrap();
    let key = (
        "ANTHROPIC_API_KEY".to_owned(),
        Secret::new("sk-ant-of-the-test"),
    );
    let programs = InstalledPrograms::new(folder.clone(), [key].into(), |_| ProgramBackend::Copied);
    let config = "agent: {acp: opencode}\nterminal: {container_persistent: true}\n";
    let lab = Lab::builder().configured_backends().config(config);
    let mut lab = lab.agents(Arc::new(programs)).start().await;
    assert_eq!(lab.ask(ALICE, "env VERSION").await, "VERSION=1");
    // Few words each, so that an answer is whole when it is first seen.
    let looks = [
        (
            "run cd ~/.hermetic/agents/opencode-x; stat -c '%s %a' large",
            "600000 644",
        ),
        (
            "run stat -c %a ~/.hermetic/agents/opencode-x/node_modules/*/bin/*",
            "755",
        ),
        ("run test -e /agents || echo none", "none"),
    ];
    for (look, found) in looks {
        assert_eq!(lab.ask(ALICE, look).await, format!("ran: {found}"));
    }
    let when = "run stat -c %Z ~/.hermetic/agents/opencode-x.installed";
    let copied = lab.ask(ALICE, when).await;
    // The sandbox is kept, and with it what was copied; only another version is copied once more.
    lab.restart().await;
    assert_eq!(lab.ask(ALICE, when).await, copied);
    fs::remove_dir_all(folder.root()).unwrap();
    put_in_place_of_opencode(folder.root(), "2").unwrap();
    let record = folder.root().join("opencode/installed");
    let other = fs::read_to_string(&record).unwrap();
    fs::write(&record, other.replace("\"x\"", "\"y\"")).unwrap();
    lab.restart().await;
    assert_eq!(lab.ask(ALICE, "env VERSION").await, "VERSION=2");
    let both = "run cd ~/.hermetic/agents && echo *.installed | wc -w";
    assert_eq!(lab.ask(ALICE, both).await, "ran: 2");
}

#[tokio::test]
async fn modes_and_models_are_chosen_from_the_chat() {
    let mut lab = lab().await;
    let before = lab.ask(ALICE, "/model").await;
    assert!(
        before.contains("tells its models when it starts"),
        "{before}"
    );
    lab.ask(ALICE, "say hi").await;
    let models = lab.ask(ALICE, "/model").await;
    assert!(
        models.contains("here: m0") && models.contains("/model m39 - Model 39"),
        "{models}"
    );
    let modes = lab.ask(ALICE, "/mode").await;
    assert!(
        modes.contains("here: ask") && modes.contains("/mode free - Free"),
        "{modes}"
    );
    let refused = lab.ask(BOB, "/mode free").await;
    assert!(
        refused.contains("Only somebody who may approve"),
        "{refused}"
    );
    let refused = lab.ask(ALICE, "/model m40").await;
    assert!(
        refused.contains("does not offer the model m40"),
        "{refused}"
    );
    let chosen = lab.ask(ALICE, "/model model 39").await;
    assert!(chosen.contains("has the model m39"), "{chosen}");
    lab.ask(ALICE, "/mode free").await;
    assert_eq!(lab.ask(ALICE, "setting model").await, "model: m39");
    assert_eq!(lab.ask(ALICE, "setting mode").await, "mode: free");
    // For one conversation, and over a restart.
    assert_eq!(lab.ask(BOB, "setting mode").await, "mode: as it was");
    lab.restart().await;
    let listed = lab.ask(ALICE, "/mode").await;
    assert!(listed.contains("chosen: free"), "{listed}");
    assert_eq!(lab.ask(ALICE, "setting model").await, "model: m39");
    // What the agent does not take stands before its answer, once.
    lab.ask(ALICE, "/model m13").await;
    let told = lab.ask(ALICE, "say on").await;
    assert!(
        told.contains("did not take the model m13") && told.ends_with("on"),
        "{told}"
    );
    assert_eq!(lab.ask(ALICE, "say on").await, "on");
    let ours = lab.ask(ALICE, "/agent hermetic").await;
    assert!(ours.contains("hermetic answers"), "{ours}");
    let modes = lab.ask(ALICE, "/mode").await;
    assert!(modes.contains("has no modes"), "{modes}");
}

/// What is said into a running turn waits for the agent; where the budget is reached meanwhile, it is a message
/// of its own, which is told so. Nothing of it is lost.
#[tokio::test]
async fn words_into_a_running_turn_are_answered_or_told_that_the_budget_is_reached() {
    for (tokens, answered) in [(100_000, true), (700, false)] {
        let more = format!(
            "budgets: {{conversation: {{tokens: {tokens}}}}}\ndisplay: {{busy_input_mode: steer}}\n"
        );
        let lab = builder(&["--usage"], "").config(&more).start().await;
        lab.says(ALICE, "ask go on");
        lab.replies(ALICE, 1).await;
        lab.says(ALICE, "say and another");
        // Another conversation's answer comes after it was taken in.
        lab.ask(BOB, "/status").await;
        lab.chat().presses(ALICE, ALICE, "Allow once");
        let said = move |record: &hermetic_testkit::chat::Record| {
            let messages = record.messages_in(&ALICE.into());
            let has = |words: &str| messages.iter().any(|one| one.text().contains(words));
            match answered {
                true => has("and another"),
                false => has("it was yes") && has("budget of this conversation"),
            }
        };
        lab.chat().wait_for("both answers", said).await;
        let replies = lab.replies(ALICE, 2).await;
        assert_eq!(
            replies.iter().any(|one| one.contains("budget of")),
            !answered,
            "{replies:?}"
        );
    }
}

/// Whatever an agent is at when the gateway is killed, its message is answered or said to be cut, and the next
/// one is.
#[tokio::test]
async fn a_kill_at_each_step_loses_nothing() {
    let mut lab = lab().await;
    lab.ask(ALICE, "remember the milk").await;
    for step in ["say at once", "tool ls", "ask go on", "work hard", "wait"] {
        lab.says(ALICE, step);
        match step {
            "ask go on" => {
                let asked = |record: &hermetic_testkit::chat::Record| {
                    let messages = record.messages_in(&ALICE.into());
                    messages.iter().any(|one| one.text().contains("❓"))
                };
                lab.chat().wait_for("the question", asked).await;
            }
            "work hard" => until_at_work(&lab).await,
            // As it comes: killed before, in or after the start of the agent and its answer.
            _ => {}
        }
        lab.crash_and_start().await;
        // Nothing that was begun holds up what is said next.
        lab.says(ALICE, "/stop");
        let words = format!("say after {step}");
        lab.says(ALICE, &words);
        let answer = format!("after {step}");
        let answered = move |record: &hermetic_testkit::chat::Record| {
            let messages = record.messages_in(&ALICE.into());
            messages.iter().any(|one| one.text().ends_with(&answer))
        };
        lab.chat()
            .wait_for("an answer after the kill", answered)
            .await;
    }
    lab.says(ALICE, "recall");
    let remembered = |record: &hermetic_testkit::chat::Record| {
        let messages = record.messages_in(&ALICE.into());
        messages
            .iter()
            .any(|one| one.text().contains("I remember: the milk"))
    };
    lab.chat().wait_for("what it remembers", remembered).await;
}

#[tokio::test]
async fn two_messages_at_once_are_two_prompts_one_after_the_other() {
    let lab = builder(&[], "")
        .config("display: {busy_input_mode: queue}\n")
        .start()
        .await;
    for words in ["say one", "say two", "say three"] {
        lab.says(ALICE, words);
    }
    let replies = lab.replies(ALICE, 3).await;
    assert_eq!(replies, ["one", "two", "three"]);
}

/// An agent that tells of no usage is counted by what leaves for its model, and stopped in the middle of a turn.
#[tokio::test]
async fn what_an_agent_does_not_tell_is_counted_at_the_proxy_and_bounded() {
    let test = "what_an_agent_does_not_tell_is_counted_at_the_proxy_and_bounded";
    if !has_sandboxes(test).await {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // All of it, or its end is a reset.
            let mut seen = Vec::new();
            let mut piece = [0; 65536];
            while let Ok(read @ 1..) = stream.read(&mut piece) {
                seen.extend_from_slice(&piece[..read]);
                if seen.ends_with(b"xxx") || seen.len() > 40_000 {
                    break;
                }
            }
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let hosts = format!(", hosts: ['localhost:{port} in 127.0.0.0/8,::1/128']");
    let lab = builder(&[], &hosts).configured_backends();
    let lab = lab
        .config("budgets: {conversation: {tokens: 12000}}\n")
        .start()
        .await;
    let url = format!("http://localhost:{port}/");
    let told = lab.ask(ALICE, &format!("post 1 4000 {url}")).await;
    assert_eq!(told, "posted");
    let usage = lab.ask(ALICE, "/usage").await;
    let line = usage
        .lines()
        .find(|line| line.contains("this conversation"));
    let line = line.unwrap();
    let tokens = line
        .split(", ")
        .find(|part| part.contains("tokens"))
        .unwrap();
    let tokens: u64 = tokens.split(' ').next().unwrap().parse().unwrap();
    assert!((1000..2000).contains(&tokens), "{usage}");
    // It goes on for minutes, if nobody stops it.
    let stopped = lab.ask(ALICE, &format!("post 2000 16000 {url}")).await;
    assert!(stopped.contains("budget of this conversation"), "{stopped}");
    let refused = lab.ask(ALICE, "say more").await;
    assert!(refused.contains("budget of this conversation"), "{refused}");
}

/// Nothing of an agent keeps its sandbox: it goes with it, and comes back by loading its session.
#[tokio::test]
async fn an_idle_agent_goes_with_its_sandbox_and_comes_back() {
    let test = "an_idle_agent_goes_with_its_sandbox_and_comes_back";
    if !hermetic_testkit::long() {
        eprintln!("SKIP: {test}: a minute, for `cargo xtask test --long`");
        return;
    }
    if !has_sandboxes(test).await {
        return;
    }
    let config = "gateway: {sandbox_lifetime: 1}\nterminal: {container_persistent: true}\n";
    let lab = builder(&[], "").configured_backends().config(config);
    let lab = lab.start().await;
    lab.ask(ALICE, "remember the milk").await;
    let let_go = async {
        while !lab
            .ask(ALICE, "/sandbox")
            .await
            .contains("stopped; its files are kept")
        {
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(PATIENCE, let_go)
        .await
        .expect("the sandbox is let go");
    assert_eq!(lab.ask(ALICE, "recall").await, "I remember: the milk");
    let started = lab.audit("command");
    let starts = started.lines().filter(|line| line.contains("python3"));
    assert_eq!(starts.count(), 2);
}

/// How often the agent's program was started.
fn starts(lab: &Lab) -> usize {
    let started = lab.audit("command");
    let lines = started.lines();
    lines.filter(|line| line.contains("python3")).count()
}

/// What an agent does not tell of is ended with it, and one that ended its work itself is kept.
#[tokio::test]
async fn in_a_real_sandbox_a_stop_ends_what_was_never_reported() {
    if !has_sandboxes("in_a_real_sandbox_a_stop_ends_what_was_never_reported").await {
        return;
    }
    let lab = builder(&[], "").configured_backends().start().await;
    lab.ask(ALICE, "remember the milk").await;
    for (order, ends) in [("tidy", false), ("quiet", true), ("detached", true)] {
        let before = starts(&lab);
        lab.says(ALICE, order);
        let asked = move |record: &hermetic_testkit::chat::Record| {
            let messages = record.messages_in(&ALICE.into());
            let words = format!("go on {order}");
            messages.iter().any(|one| one.text().contains(&words))
        };
        lab.chat().wait_for("the agent at work", asked).await;
        stop(&lab).await;
        assert_eq!(lab.ask(ALICE, "recall").await, "I remember: the milk");
        let after = before + usize::from(ends);
        assert_eq!(starts(&lab), after, "{order}");
        // Its end is asked for and not waited for.
        let mut left = String::new();
        for _ in 0..20 {
            left = lab
                .ask(ALICE, "run cat /proc/[0-9]*/comm | sort | xargs")
                .await;
            if !left.contains("sleep") {
                break;
            }
        }
        assert!(!left.contains("sleep"), "{order}: {left}");
    }
}

/// Two answers of one turn are two answers, and a tool in the second does not take the first.
#[tokio::test]
async fn what_is_said_into_a_turn_is_answered_beside_what_was_answered_before() {
    let config = "display: {busy_input_mode: steer}\nstreaming: false\n";
    let lab = builder(&[], "").config(config).start().await;
    lab.says(ALICE, "ask go on");
    lab.replies(ALICE, 1).await;
    lab.says(ALICE, "tool ls");
    // Another conversation's answer comes after it was taken in.
    lab.ask(BOB, "/status").await;
    lab.chat().presses(ALICE, ALICE, "Allow once");
    let replies = lab.replies(ALICE, 2).await;
    let both = "it was yes\n\nLooked.";
    assert!(replies.iter().any(|one| one == both), "{replies:?}");
}

#[tokio::test]
async fn pictures_and_files_that_come_along_reach_an_agent() {
    if !has_sandboxes("pictures_and_files_that_come_along_reach_an_agent").await {
        return;
    }
    // The least that is a picture to whoever looks at its first bytes.
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    // What our own model is shown is another matter.
    for (setting, options, seen) in [
        ("", &[][..], "text,image,resource_link"),
        (", image_input_mode: text", &[], "text,image,resource_link"),
        ("", &["--no-images"], "text,resource_link"),
    ] {
        let words = serde_json::to_string(&agent_command(options)).unwrap();
        let config = format!(
            "agent: {{acp: {{name: tester, command: {words}}}{setting}}}\nstreaming: false\n"
        );
        let lab = Lab::builder().configured_backends().config(&config);
        let lab = lab.start().await;
        let shown = Speech::by(ALICE, "blocks").with_file("a.png", picture.clone());
        lab.chat().hear(shown);
        assert_eq!(lab.replies(ALICE, 1).await, [seen], "{setting} {options:?}");
        let file = Speech::by(ALICE, "blocks").with_file("a.txt", "one");
        lab.chat().hear(file);
        let replies = lab.replies(ALICE, 2).await;
        assert_eq!(replies[1], "text,resource_link", "{setting} {options:?}");
    }
}

#[tokio::test]
async fn compacting_asks_nobody_where_another_agent_remembers() {
    let lab = lab().await;
    for words in ["say one", "say two", "say three"] {
        lab.ask(ALICE, words).await;
    }
    let told = lab.ask(ALICE, "/compact").await;
    assert!(told.contains("tester answers here"), "{told}");
    assert!(lab.asked().is_empty(), "our own model was asked");
}

/// What a conversation's own backend needs counts, and not what the usual one does.
#[tokio::test]
async fn an_agent_is_looked_at_for_the_backend_of_its_conversation() {
    let state = tempfile::tempdir().unwrap();
    let folder = AgentFolder::in_state(state.path());
    put_in_place_of_opencode(folder.root(), "1").unwrap();
    let key = (
        "ANTHROPIC_API_KEY".to_owned(),
        Secret::new("sk-ant-of-the-test"),
    );
    let reach = |backend| match backend {
        BackendKind::Native => ProgramBackend::Near,
        _ => ProgramBackend::Far("no agent gets there".to_owned()),
    };
    let programs = Arc::new(InstalledPrograms::new(folder, [key].into(), reach));
    // On the usual one of them no agent of others runs.
    for (platforms, chosen) in [
        ("", "does not run on the backend local"),
        (
            "platforms: {telegram: {terminal_backend: native}}\n",
            "opencode answers here",
        ),
    ] {
        let config = format!(
            "gateway: {{terminal_backend: local}}\napprovals: {{approvers: ['telegram:7']}}\n{platforms}"
        );
        let lab = Lab::builder().config(&config).agents(programs.clone());
        let lab = lab.start().await;
        let told = lab.ask(ALICE, "/agent opencode").await;
        assert!(told.contains(chosen), "{platforms}: {told}");
    }
}

#[tokio::test]
async fn an_agent_that_cannot_go_on_with_its_session_says_that_new_helps() {
    let mut lab = builder(&["--dies-loading"], "").start().await;
    lab.ask(ALICE, "remember the milk").await;
    lab.crash_and_start().await;
    let told = lab.ask(ALICE, "recall").await;
    assert!(told.contains("/new begins a new one"), "{told}");
    lab.ask(ALICE, "/new").await;
    assert_eq!(lab.ask(ALICE, "say on").await, "on");
}

/// One that hangs at its start because of a host says nothing itself.
#[tokio::test]
async fn a_host_that_is_refused_while_an_agent_starts_is_told_at_once() {
    if !has_sandboxes("a_host_that_is_refused_while_an_agent_starts_is_told_at_once").await {
        return;
    }
    let options = ["--reaches=api.example.org", "--hangs-opening"];
    let lab = builder(&options, "").configured_backends().start().await;
    let told = lab.ask(ALICE, "say hi").await;
    let refused = "api.example.org:443 was not reached";
    assert!(told.contains(refused), "{told}");
    stop(&lab).await;
}
