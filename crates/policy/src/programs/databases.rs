//! Databases and the statements that lose data.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::is_hole;

const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "mongosh",
    "mongo",
    "redis-cli",
    "valkey-cli",
    "cqlsh",
    "clickhouse-client",
    "clickhouse",
    "duckdb",
    "sqlcmd",
    "mysqladmin",
    "pgcli",
    "mycli",
    "litecli",
    "influx",
    "cockroach",
    "snowsql",
    "bq",
    "sqlplus",
    "usql",
    "iredis",
    "presto",
    "trino",
    "beeline",
    "hive",
    "surreal",
    "turso",
    "isql",
    "db2",
    "wp",
    "rails",
    "spanner-cli",
    "mssql-cli",
    "athenacli",
    "keydb-cli",
];

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(
        &["dropdb", "dropuser"],
        &[],
        HarmCategory::Database,
        "deletes a database or its user",
    )
    .unless(&["--help", "--version"]),
    HarmfulAct::new(
        &["mysqladmin"],
        &["drop|shutdown|flush-privileges"],
        HarmCategory::Database,
        "deletes or stops a database",
    ),
    HarmfulAct::new(
        &["mysqladmin"],
        &["*", "drop|shutdown"],
        HarmCategory::Database,
        "deletes or stops a database",
    ),
    HarmfulAct::new(
        &["pg_dropcluster", "pg_resetwal"],
        &[],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["pg_ctl", "pg_ctlcluster"],
        &["stop|*"],
        HarmCategory::Database,
        "stops a database",
    )
    .with(&["stop", "immediate"]),
    HarmfulAct::new(
        &["pg_restore", "mongorestore", "mysqlpump"],
        &[],
        HarmCategory::Database,
        "overwrites a database",
    )
    .with(&["--clean", "-c", "--drop"]),
    HarmfulAct::new(
        &["rails", "rake", "bin/rails"],
        &["db:drop*|db:reset*|db:purge*|db:truncate_all|db:schema:load|db:migrate:reset"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["prisma"],
        &["migrate", "reset"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["prisma"],
        &["db", "push"],
        HarmCategory::Database,
        "deletes data of a database",
    )
    .with(&["--force-reset", "--accept-data-loss"]),
    HarmfulAct::new(
        &["sequelize", "sequelize-cli", "knex", "typeorm"],
        &["db:drop|db:migrate:undo:all|schema:drop|migrate:rollback"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["artisan", "migrate"],
        &["migrate:fresh|migrate:reset|db:wipe|drop"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["alembic"],
        &["downgrade", "base"],
        HarmCategory::Database,
        "takes a database back",
    ),
    HarmfulAct::new(
        &["diesel", "sqlx"],
        &["database|migration", "reset|drop|redo|revert"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &[
            "kafka-topics",
            "kafka-topics.sh",
            "kafka-delete-records.sh",
            "kafka-delete-records",
        ],
        &[],
        HarmCategory::Database,
        "deletes a queue",
    )
    .with(&["--delete", "--offset-json-file"]),
    HarmfulAct::new(
        &["rabbitmqctl"],
        &["reset|force_reset|delete_*|purge_queue|stop|stop_app|delete_vhost|delete_user"],
        HarmCategory::Database,
        "deletes or stops a queue",
    ),
    HarmfulAct::new(
        &["flushall"],
        &[],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["influx"],
        &["bucket|delete|org", "delete|*"],
        HarmCategory::Database,
        "deletes data",
    )
    .with(&["delete"]),
    HarmfulAct::new(
        &["mix"],
        &["ecto.drop|ecto.reset|ecto.rollback"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["supabase"],
        &["db", "reset"],
        HarmCategory::Database,
        "deletes a database",
    ),
    HarmfulAct::new(
        &["edgedb", "gel", "cockroach"],
        &[
            "database|instance|branch|node",
            "drop|wipe|destroy|decommission|drain",
        ],
        HarmCategory::Database,
        "deletes a database",
    ),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    if matches!(program, "curl" | "http" | "xh") && deletes_an_index(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Database,
            "deletes an index",
        ));
    }
    if program == "redis-cli"
        && command
            .operands()
            .any(|text| text.s.eq_ignore_ascii_case("del"))
        && command.operands().any(|text| !text.is_known())
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Database,
            "deletes whatever keys a listing names",
        ));
    }
    if matches!(program, "php")
        && command.args().iter().any(|arg| {
            matches!(
                arg.s.as_str(),
                "migrate:fresh" | "migrate:reset" | "db:wipe" | "migrate:refresh"
            )
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Database,
            "deletes a database",
        ));
    }
    if command
        .args()
        .iter()
        .any(|arg| arg.s == "manage.py" || arg.s.ends_with("/manage.py"))
        && command
            .args()
            .iter()
            .any(|arg| matches!(arg.s.as_str(), "flush" | "reset_db" | "sqlflush"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Database,
            "deletes a database",
        ));
    }
    // Statements typed where a command belongs.
    let bare = matches!(program, "DROP" | "DELETE" | "TRUNCATE");
    if !CLIENTS.contains(&program) && !bare {
        return findings;
    }
    let mut statements: Vec<String> = command
        .args()
        .iter()
        .map(|arg| arg.s.replace(is_hole, "x"))
        .collect();
    if !CLIENTS.contains(&program) {
        statements = vec![command.line()];
    }
    // `redis-cli FLUSHALL` comes as words.
    if program.ends_with("-cli") || program == "mysqladmin" {
        statements.push(statements.join(" "));
    }
    statements.extend(command.input.known.clone());
    for statement in &statements {
        if let Some(reason) = destructive_sql(statement) {
            findings.push(HarmFinding::dangerous(HarmCategory::Database, reason));
            break;
        }
    }
    for statement in &statements {
        let lower = statement.to_lowercase();
        if let Some(at) = lower.find("\\!") {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Injection,
                format!("runs a command from inside {program}: {}", &statement[at..]),
            ));
            break;
        }
        if lower.contains("copy ") && lower.contains(" program ")
            || lower.contains("xp_cmdshell")
            || lower.contains("into outfile")
            || lower.contains("into dumpfile")
            || lower.contains("load_file(")
            || lower.contains("lo_export")
            || lower.contains("sys_exec(")
            || lower.starts_with(".shell")
            || lower.starts_with(".system")
            || lower.contains("load_extension(")
            || lower.contains("pg_read_file")
            || lower.starts_with("system ") && program != "clickhouse-client"
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Injection,
                format!("reaches out of the database with {program}"),
            ));
            break;
        }
        if matches!(program, "redis-cli" | "valkey-cli")
            && (lower.contains("config set dir")
                || lower.contains("config set dbfilename")
                || lower.contains("module load")
                || lower.contains("slaveof ")
                || lower.contains("debug segfault"))
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Injection,
                "makes the database write or load files",
            ));
            break;
        }
    }
    findings
}

/// A request that takes data out of a store: `DELETE http://search:9200/name`.
fn deletes_an_index(command: &ReducedCommand) -> bool {
    /// Where search engines, key stores, time series and brokers listen.
    const STORES: &[&str] = &[
        ":9200", ":7700", ":5984", ":8086", ":6333", ":8983", ":8529", ":7474", ":2379", ":15672",
        ":9090", ":3100", ":8200", ":8500", ":8108",
    ];
    const BY_PATH: &[&str] = &[
        "/_delete_by_query",
        "/delete_series",
        "/doDelete",
        "/delete-batch",
        "/_cluster/settings",
    ];
    let asks = |method: &str| {
        command.has_arg(method)
            || command.has_arg(&format!("-X{method}"))
            || command.has_arg(&format!("--request={method}"))
    };
    let (deletes, changes) = (asks("DELETE"), asks("POST") || asks("PUT"));
    command.operands().any(|text| {
        let rest = text
            .s
            .split_once("://")
            .map_or(text.s.as_str(), |(_, rest)| rest);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let whole = format!("/{path}");
        deletes && (STORES.iter().any(|port| host.ends_with(port)) || path == "_all" || path == "*")
            || changes && BY_PATH.iter().any(|end| whole.contains(end))
    })
}

/// Why a statement loses data.
pub(crate) fn destructive_sql(text: &str) -> Option<&'static str> {
    if text.len() > 64 * 1024 {
        return None;
    }
    let mut upper = strip_comments(text).to_uppercase();
    // What a query only mentions in quotes it does not do.
    if upper.trim_start().starts_with("SELECT")
        && !upper.contains("EXECUTE")
        && !upper.contains(';')
    {
        upper = upper.split('\'').step_by(2).collect();
    }
    let words: Vec<&str> = upper
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '(' | '"' | '\'' | '`'))
        .filter(|word| !word.is_empty())
        .collect();
    let makes = matches!(words.first(), Some(&("CREATE" | "ALTER")))
        && matches!(words.get(1), Some(&("ROLE" | "USER")));
    if makes
        && words
            .iter()
            .any(|word| matches!(*word, "SUPERUSER" | "PASSWORD" | "CREATEROLE" | "BYPASSRLS"))
    {
        return Some("changes who may do what in a database");
    }
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        match *word {
            "DROP"
                if matches!(
                    next,
                    "TABLE"
                        | "DATABASE"
                        | "SCHEMA"
                        | "INDEX"
                        | "VIEW"
                        | "COLUMN"
                        | "USER"
                        | "ROLE"
                        | "KEYSPACE"
                        | "COLLECTION"
                        | "TABLESPACE"
                        | "PROCEDURE"
                        | "FUNCTION"
                        | "MATERIALIZED"
                        | "OWNED"
                        | "TRIGGER"
                        | "SEQUENCE"
                        | "MEASUREMENT"
                        | "TYPE"
                        | "EXTENSION"
                        | "BUCKET"
                ) =>
            {
                return Some("deletes a table or database (DROP)");
            }
            "TRUNCATE" if !next.is_empty() => return Some("empties a table (TRUNCATE)"),
            "DELETE" if next == "FROM" => {
                let rest: Vec<&str> = words[at..]
                    .iter()
                    .copied()
                    .take_while(|word| *word != "RETURNING")
                    .collect();
                let filtered = rest.contains(&"WHERE");
                let always = upper.contains("WHERE 1=1")
                    || upper.contains("WHERE TRUE")
                    || upper.contains("WHERE 1 = 1")
                    || upper.contains("WHERE 1;")
                    || upper.trim_end().ends_with("WHERE 1");
                if !filtered || always {
                    return Some("deletes all rows of a table");
                }
            }
            "UPDATE"
                if words[at..].contains(&"SET")
                    && !words[at..].contains(&"WHERE")
                    && at == 0
                    && !words.contains(&"SYSCTL") =>
            {
                return Some("changes all rows of a table");
            }
            "FLUSHALL" | "FLUSHDB" => return Some("deletes a whole database"),
            "ALTER" if matches!(next, "USER" | "ROLE") => {
                return Some("changes who may use the database");
            }
            "GRANT" if next == "ALL" => return Some("changes who may use the database"),
            "SHUTDOWN" if at == 0 || words[at - 1] == "ADMIN" => return Some("stops the database"),
            _ => {}
        }
    }
    let lower = text.to_lowercase();
    if lower.contains("dropdatabase(")
        || lower.contains(".drop(")
        || lower.contains("deletemany({})")
        || lower.contains("remove({})")
        || lower.contains(".dropcollection")
        || lower.contains("db.shutdownserver")
    {
        return Some("deletes a collection or database");
    }
    None
}

/// `DROP/**/TABLE` is still a drop.
fn strip_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = rest[at + 2..]
            .split_once("*/")
            .map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}
