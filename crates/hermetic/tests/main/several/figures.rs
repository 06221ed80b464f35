//! How long a hand-over takes, and what gateways that do nothing ask of the database. Printed for
//! whoever reads them, with `cargo xtask test --long` alone.

use std::time::{Duration, Instant};

use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::cluster::{Cluster, LONG};

const USER: i64 = 7;

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_is_heard_of_and_gateways_that_idle_are_quiet() {
    let test = "several::figures::a_hand_over_is_heard_of_and_gateways_that_idle_are_quiet";
    if !hermetic_testkit::long() {
        return;
    }
    let (rounds, idle) = (5, Duration::from_secs(60));
    let telegram = TelegramServer::start().await.unwrap();
    let model = ScriptedServer::answering(|_| Reply::streams(&["yes"])).await;
    let model = model.unwrap();
    let config = format!(
        "model: {{default: scripted, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n",
        model.base_url(),
        telegram.url(),
    );
    let env = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nOPENAI_API_KEY=k\nTELEGRAM_ALLOWED_USERS=7\n");
    let Some(mut cluster) = Cluster::new(test, 3, ("local", &config, &env)).await else {
        return;
    };
    for member in &mut cluster.members {
        member.start();
    }
    cluster.next_holder(&[]).await;
    says_and_hears(&telegram, &cluster).await;
    count_idle(&cluster, idle).await;
    for round in 0..rounds {
        eprintln!("round {round} of {rounds}");
        hand_over(&mut cluster, &telegram, Signal::TERM).await;
        hand_over(&mut cluster, &telegram, Signal::KILL).await;
    }
}

/// From the signal to the first word of whoever takes over, to a message that was said at that moment.
async fn hand_over(cluster: &mut Cluster, telegram: &TelegramServer, signal: Signal) {
    let holder = cluster.next_holder(&[]).await;
    says_and_hears(telegram, cluster).await;
    let at = Instant::now();
    cluster.members[holder].signal(signal);
    let answered = says_and_hears(telegram, cluster).await;
    eprintln!(
        "{signal:?}: first word after {:?}",
        answered.duration_since(at)
    );
    cluster.members[holder].end().await;
    assert_ne!(cluster.next_holder(&[]).await, holder);
    cluster.members[holder].start();
    cluster.members[holder].says("standing by").await;
}

async fn says_and_hears(telegram: &TelegramServer, cluster: &Cluster) -> Instant {
    let before = telegram.calls("sendMessage").len();
    telegram.says(USER, "are you there?");
    let answered = telegram.wait_for("sendMessage", before + 1);
    let answered = timeout(LONG, answered).await;
    answered.unwrap_or_else(|_| panic!("no answer: {}", cluster.logs()));
    Instant::now()
}

/// Statements of each member while nobody says anything, as the server's own log has them.
async fn count_idle(cluster: &Cluster, idle: Duration) {
    for setting in ["log_line_prefix = '%a '", "log_statement = 'all'"] {
        let set = sqlx::AssertSqlSafe(format!("ALTER SYSTEM SET {setting}"));
        sqlx::query(set).execute(&cluster.rows).await.unwrap();
    }
    let reload = sqlx::query("SELECT pg_reload_conf()");
    reload.execute(&cluster.rows).await.unwrap();
    sleep(idle).await;
    let log: String = sqlx::query_scalar("SELECT pg_read_file('log')")
        .fetch_one(&cluster.rows)
        .await
        .unwrap();
    let off = sqlx::query("ALTER SYSTEM RESET log_statement");
    off.execute(&cluster.rows).await.unwrap();
    for member in 0..cluster.members.len() {
        let own = format!("member{member} LOG:");
        let own = log.lines().filter(|line| line.starts_with(&own));
        let said = own
            .filter(|line| line.contains(" statement: ") || line.contains(" execute "))
            .collect::<Vec<_>>();
        let rate = said.len() as f64 / idle.as_secs_f64();
        eprintln!(
            "member {member}: {} statements, {rate:.2} a second",
            said.len()
        );
        assert!(!said.is_empty(), "a gateway that lives says so");
    }
}
