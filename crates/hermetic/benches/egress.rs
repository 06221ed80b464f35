//! Bulk through a real sandbox's way out: out of the cage, over the warden's link, through the proxy, to an
//! origin on loopback.
//!
//! `cargo bench -p hermetic --bench egress`
//!
//! The peer in the same run is the same client connected to the same origin with nothing between them. Both
//! take turns, and medians are printed.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Done<T> = Result<T, Box<dyn Error>>;

/// What this same program is to be, told by its environment.
const ROLE: &str = "EGRESS_BENCH_ROLE";
const ORIGIN: &str = "EGRESS_BENCH_ORIGIN";
const PROXY: &str = "EGRESS_BENCH_PROXY";
/// Where the program is inside.
const INSIDE: &str = "/mnt/bench";

const TIME: Duration = Duration::from_secs(3);
const TURNS: usize = 5;

fn main() -> Done<()> {
    match std::env::var(ROLE).as_deref() {
        Ok("origin") => origin(),
        Ok(way) => client(way),
        Err(_) => measure(),
    }
}

fn measure() -> Done<()> {
    let home = tempfile::tempdir()?;
    let hermetic = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermetic"));
        command.env("HERMES_HOME", home.path()).stdin(Stdio::null());
        command
    };
    let can = hermetic()
        .args(["doctor", "--backend", "native"])
        .stdout(Stdio::null())
        .status()?;
    if !can.success() {
        println!("SKIP: no native sandbox can be had here");
        return Ok(());
    }
    let origin = Origin::start()?;
    let itself = std::env::current_exe()?;
    let rule = format!("tcp://localhost:{} in 127.0.0.0/8,::1/128", origin.port);
    let direct = |way: &str| {
        let mut command = Command::new(&itself);
        command.env(ROLE, way).env(ORIGIN, origin.port.to_string());
        rate(command)
    };
    let through = |way: &str| {
        let mut command = hermetic();
        command
            .args(["exec", "--backend", "native", "--allow", &rule])
            .arg("--mount")
            .arg(format!("{}:{INSIDE}", itself.display()))
            .args(["--env", &format!("{ROLE}={way}")])
            .args(["--env", &format!("{ORIGIN}={}", origin.port)])
            .args(["--env", &format!("{PROXY}=3128"), "--", INSIDE]);
        rate(command)
    };
    for way in ["down", "up"] {
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            plain.push(direct(way)?);
            ours.push(through(way)?);
        }
        let (plain, ours) = (median(plain), median(ours));
        println!(
            "bulk {way:4}  direct {plain:.2} GB/s, from a sandbox {ours:.2} GB/s ({:.0} %)",
            ours / plain * 100.0
        );
    }
    Ok(())
}

/// Gigabytes a second, as the client says.
fn rate(mut client: Command) -> Done<f64> {
    let output = client.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map_err(|_| {
        let why = String::from_utf8_lossy(&output.stderr);
        format!(
            "the client ended with {} and said {said:?}: {why}",
            output.status
        )
        .into()
    })
}

/// Takes or gives as much as goes in the time, and says how much that was.
fn client(way: &str) -> Done<()> {
    let origin: u16 = std::env::var(ORIGIN)?.parse()?;
    let mut stream = match std::env::var(PROXY) {
        Ok(port) => tunnel(port.parse()?, origin)?,
        Err(_) => TcpStream::connect(("127.0.0.1", origin))?,
    };
    let mut buffer = vec![b'x'; 256 * 1024];
    stream.write_all(&way.as_bytes()[..1])?;
    let (begun, mut total) = (Instant::now(), 0);
    while begun.elapsed() < TIME {
        total += match way {
            "down" => stream.read(&mut buffer)?,
            _ => stream.write(&buffer)?,
        };
    }
    println!("{}", total as f64 / begun.elapsed().as_secs_f64() / 1e9);
    Ok(())
}

fn tunnel(proxy: u16, origin: u16) -> Done<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy))?;
    write!(
        stream,
        "CONNECT localhost:{origin} HTTP/1.1\r\nHost: localhost:{origin}\r\n\r\n"
    )?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    if !head.starts_with(b"HTTP/1.1 200 ") {
        return Err(String::from_utf8_lossy(&head).into());
    }
    Ok(stream)
}

struct Origin {
    process: Child,
    port: u16,
}

impl Origin {
    fn start() -> Done<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .env(ROLE, "origin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let said = process.stdout.take().ok_or("no stdout")?;
        BufReader::new(said).read_line(&mut line)?;
        let port = line.trim().parse()?;
        Ok(Self { process, port })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Until it is killed: `d` is answered by an endless stream, everything after `u` is thrown away.
fn origin() -> Done<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::spawn(move || {
            let (mut way, mut block) = ([0], vec![b'x'; 256 * 1024]);
            if stream.read_exact(&mut way).is_err() {
                return;
            }
            match way[0] {
                b'd' => while stream.write_all(&block).is_ok() {},
                _ => while stream.read(&mut block).is_ok_and(|read| read > 0) {},
            }
        });
    }
    Ok(())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}
