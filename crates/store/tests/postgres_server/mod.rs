//! A real PostgreSQL for tests: of Debian's programs, in a folder of its own, on a Unix socket and nothing else.
//!
//! One is shared by all tests of a run, whichever process they are in, with a database for each of them. It is
//! stopped and its folder removed a while after the last of them ended. A test that kills its server starts one
//! for itself.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

/// Whom the server runs as where a test runs as root, which it refuses.
const NOBODY: u32 = 65534;

/// A server in a folder.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    /// Removes the folder of one that is nobody else's.
    own: Option<tempfile::TempDir>,
    /// Held by everybody who uses one that is shared.
    _in_use: Option<File>,
}

impl PostgresServer {
    /// The one that all tests share; nothing where this machine has no PostgreSQL.
    #[allow(dead_code, reason = "not every test binary shares one")]
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
        let started = || Some(Self::start_shared(programs()?).expect("a PostgreSQL starts"));
        SHARED.get_or_init(started).as_ref()
    }

    /// One for a single test, which may do with it what it likes.
    #[allow(dead_code, reason = "not every test binary kills its server")]
    pub(crate) fn private() -> Option<Self> {
        let programs = programs()?;
        let own = tempfile::tempdir().expect("a folder for a server");
        let mut server = Self {
            programs,
            folder: own.path().to_owned(),
            own: None,
            _in_use: None,
        };
        server.make().expect("a PostgreSQL is made");
        server.own = Some(own);
        server.start().expect("a PostgreSQL starts");
        Some(server)
    }

    /// The address of a new, empty database.
    pub(crate) async fn new_database(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("t_{}_{count}", std::process::id());
        let options = PgConnectOptions::new_without_pgpass()
            .socket(&self.folder)
            .username("hermetic")
            .database("postgres");
        let mut connection = options
            .connect()
            .await
            .expect("the test's PostgreSQL answers");
        let create = format!("CREATE DATABASE {name}");
        let created = connection.execute(AssertSqlSafe(create)).await;
        created.expect("a database is made");
        self.address(&name)
    }

    pub(crate) fn address(&self, database: &str) -> String {
        let socket = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://hermetic@{socket}/{database}")
    }

    /// The socket that it listens on.
    #[allow(dead_code, reason = "not every test binary needs it")]
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    #[allow(dead_code, reason = "not every test binary restarts it")]
    pub(crate) fn start(&self) -> io::Result<()> {
        self.start_with("")
    }

    /// Whoever comes from now on comes over TLS, to this port of this machine. The certificate is one of
    /// `localhost`, by the authority in the file that is given back; nothing where there is no `openssl`.
    #[allow(dead_code, reason = "not every test binary needs TLS")]
    pub(crate) fn restart_with_tls(&self, port: u16) -> Option<PathBuf> {
        let data = self.folder.join("data");
        fs::write(data.join("names"), "subjectAltName=DNS:localhost\n").expect("a file");
        let only_tls = "hostssl all all 127.0.0.1/32 trust\nhostssl all all ::1/128 trust\n";
        fs::write(data.join("pg_hba.conf"), only_tls).expect("a file");
        const KEY: [&str; 5] = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ];
        let authority = ["-subj", "/CN=ours", "-keyout", "ca.key", "-out", "ca.pem"];
        let server = [
            "-subj",
            "/CN=server",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        ];
        let signed = [
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "server.crt",
        ];
        for words in [
            [&["req", "-x509", "-days", "2"][..], &KEY, &authority].concat(),
            [&["req"][..], &KEY, &server].concat(),
            signed.to_vec(),
        ] {
            let mut openssl = Command::new("openssl");
            self.as_nobody(&mut openssl);
            openssl.current_dir(&data).args(words).stderr(Stdio::null());
            openssl
                .status()
                .ok()
                .filter(std::process::ExitStatus::success)?;
        }
        self.kill();
        let started = self.start_with(&format!(
            " -c listen_addresses=localhost -c port={port} -c ssl=on"
        ));
        started.expect("the server starts with TLS");
        Some(data.join("ca.pem"))
    }

    fn start_with(&self, more: &str) -> io::Result<()> {
        let settings = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c max_connections=200 \
             -c max_prepared_transactions=0{more}",
            self.folder.display()
        );
        let mut start = self.program("pg_ctl");
        start.args(["start", "-w", "-s", "-t", "60", "-l"]);
        start
            .arg(self.folder.join("data/log"))
            .arg("-o")
            .arg(settings);
        succeeds(start.arg("-D").arg(self.folder.join("data")))
    }

    /// As if the power went: every process of it at once, and nothing tidied up.
    #[allow(dead_code, reason = "not every test binary kills its server")]
    pub(crate) fn kill(&self) {
        let mut stop = self.program("pg_ctl");
        stop.args(["stop", "-w", "-s", "-m", "immediate", "-D"]);
        succeeds(stop.arg(self.folder.join("data"))).expect("the server is killed");
    }

    /// A standby as this server stands now. It is not started and gets nothing of what comes.
    #[allow(dead_code, reason = "not every test binary has two")]
    pub(crate) fn standby(&self) -> Self {
        let own = tempfile::tempdir().expect("a folder for a server");
        let mut standby = Self {
            programs: self.programs.clone(),
            folder: own.path().to_owned(),
            own: None,
            _in_use: None,
        };
        standby.own_folder().expect("a folder for a server");
        let mut copy = standby.program("pg_basebackup");
        copy.args(["-U", "hermetic", "-c", "fast", "-R", "--no-sync", "-h"]);
        copy.arg(&self.folder)
            .arg("-D")
            .arg(standby.folder.join("data"));
        succeeds(&mut copy).expect("the server is copied");
        standby.own = Some(own);
        standby
    }

    /// From now on it takes writes.
    #[allow(dead_code, reason = "not every test binary has two")]
    pub(crate) fn promote(&self) {
        let mut promote = self.program("pg_ctl");
        promote.args(["promote", "-w", "-s", "-D"]);
        succeeds(promote.arg(self.folder.join("data"))).expect("the standby is promoted");
    }

    fn start_shared(programs: PathBuf) -> io::Result<Self> {
        let user = fs::metadata("/proc/self")?;
        let user = std::os::unix::fs::MetadataExt::uid(&user);
        let folder = std::env::temp_dir().join(format!("hermetic-test-postgres-{user}"));
        fs::create_dir_all(&folder)?;
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(&folder)?);
        if owner != user && owner != NOBODY {
            return Err(io::Error::other(
                "the folder of the test's PostgreSQL is somebody else's",
            ));
        }
        let lock = |name: &str| {
            let path = std::env::temp_dir().join(format!("hermetic-test-postgres-{user}.{name}"));
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
        };
        let (starting, in_use) = (lock("starting")?, lock("users")?);
        starting.lock()?;
        in_use.lock_shared()?;
        let server = Self {
            programs,
            folder,
            own: None,
            _in_use: Some(in_use),
        };
        if UnixStream::connect(server.socket()).is_err() {
            server.make()?;
            server.start()?;
            server.stop_when_unused(user)?;
        }
        Ok(server)
    }

    fn make(&self) -> io::Result<()> {
        let data = self.folder.join("data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir(&data)?;
        self.own_folder()?;
        if is_root()? {
            chown(&data, Some(NOBODY), Some(NOBODY))?;
        }
        let mut make = self.program("initdb");
        make.args([
            "-A",
            "trust",
            "-U",
            "hermetic",
            "-E",
            "UTF8",
            "--no-sync",
            "-D",
        ]);
        succeeds(make.arg(&data))
    }

    fn own_folder(&self) -> io::Result<()> {
        if is_root()? {
            fs::set_permissions(&self.folder, PermissionsExt::from_mode(0o755))?;
            chown(&self.folder, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(())
    }

    /// Whoever comes last does not know it, so somebody waits until nobody holds the lock, and still nobody a
    /// while later.
    fn stop_when_unused(&self, user: u32) -> io::Result<()> {
        let users = std::env::temp_dir().join(format!("hermetic-test-postgres-{user}.users"));
        let wait = "while :; do flock -x \"$1\" true; sleep 10; \
                    flock -n -x \"$1\" sh -c '\"$1\" stop -s -m immediate -D \"$2/data\"; rm -rf \"$2/data\"' \
                    sh \"$2\" \"$3\" && exit; done";
        let mut watch = Command::new("sh");
        watch.args(["-c", wait, "sh"]).arg(users);
        watch.arg(self.programs.join("pg_ctl")).arg(&self.folder);
        self.as_nobody(&mut watch);
        watch
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        watch.process_group(0).spawn().map(drop)
    }

    fn program(&self, name: &str) -> Command {
        let mut program = Command::new(self.programs.join(name));
        self.as_nobody(&mut program);
        program
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        program
    }

    fn as_nobody(&self, program: &mut Command) {
        if is_root().unwrap_or(false) {
            program.uid(NOBODY).gid(NOBODY);
        }
        program
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.own.is_some() {
            let mut stop = self.program("pg_ctl");
            stop.args(["stop", "-s", "-m", "immediate", "-D"])
                .stderr(Stdio::null());
            let _ = stop.arg(self.folder.join("data")).status();
        }
    }
}

fn is_root() -> io::Result<bool> {
    let this = fs::metadata("/proc/self")?;
    Ok(std::os::unix::fs::MetadataExt::uid(&this) == 0)
}

fn succeeds(command: &mut Command) -> io::Result<()> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{command:?} failed"))),
    }
}

/// Where `postgres` and what belongs to it are: Debian keeps them out of the path.
fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut debian: Vec<_> = debian
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: Vec<_> = std::env::split_paths(&path).collect();
    let has_all = |folder: &Path| {
        let programs = ["postgres", "initdb", "pg_ctl"];
        programs
            .iter()
            .all(|program| folder.join(program).is_file())
    };
    debian
        .into_iter()
        .rev()
        .chain(path)
        .find(|folder| has_all(folder))
}
