//! What `hermetic exec -- true` costs a person who types it, next to bubblewrap in the same run.
//!
//! `cargo bench -p hermetic --bench exec`
//!
//! Wall time is taken turn by turn, so that whatever else the machine does hits all. CPU time and
//! the number of system calls come from runs of their own: other work falsifies them less. Nothing is
//! asserted, because a busy machine is no failure.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

type Done<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 60;
/// The kernel tells CPU time in hundredths of a second: so many make that exact enough.
const CPU_ROUNDS: u32 = 40;
const TICKS_A_SECOND: f64 = 100.0;

fn main() -> Done<()> {
    let home = tempfile::tempdir()?;
    let programs = programs(&home);
    for program in &programs {
        // The first of a home copies `/etc`; the others find it.
        if !program.run()? {
            println!("SKIP: {} does not run here", program.name);
            return Ok(());
        }
    }
    let medians = wall_times(&programs)?;
    cpu_times(&programs)?;
    system_calls(&programs, home.path())?;
    for (program, median) in programs.iter().zip(&medians) {
        let ratio = median.as_secs_f64() / medians[BUBBLEWRAP].as_secs_f64();
        println!("{:40} {ratio:8.2} x bwrap", program.name);
    }
    Ok(())
}

struct Program {
    name: &'static str,
    words: Vec<String>,
    home: String,
}

const BUBBLEWRAP: usize = 1;

fn programs(home: &TempDir) -> Vec<Program> {
    let ours = env!("CARGO_BIN_EXE_hermetic");
    let program = |name, words: &[&str]| Program {
        name,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        home: home.path().to_string_lossy().into_owned(),
    };
    vec![
        program("true", &["/bin/true"]),
        program("bwrap --unshare-all true", &BWRAP),
        program("hermetic --version", &[ours, "--version"]),
        program("hermetic exec -- true", &[ours, "exec", "--", "true"]),
    ]
}

/// The same view of the system that a native sandbox has, without its layers.
const BWRAP: [&str; 20] = [
    "bwrap",
    "--unshare-all",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
];

impl Program {
    fn run(&self) -> Done<bool> {
        Ok(self.command(&[]).status()?.success())
    }

    /// With other words before it.
    fn command(&self, before: &[&str]) -> Command {
        let own = self.words.iter().map(String::as_str);
        let last = (self.words[0] == "bwrap").then_some("/bin/true");
        let mut words = before.iter().copied().chain(own).chain(last);
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .env_remove("HERMES_HOME")
            .env("HOME", &self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }
}

fn wall_times(programs: &[Program]) -> Done<Vec<Duration>> {
    let mut times = vec![Vec::new(); programs.len()];
    for _ in 0..ROUNDS {
        for (program, times) in programs.iter().zip(&mut times) {
            let begun = Instant::now();
            program.run()?;
            times.push(begun.elapsed());
        }
    }
    println!("{:40} {:>8} {:>8} {:>8}", "ms", "min", "p50", "p95");
    for (program, times) in programs.iter().zip(&mut times) {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
        println!(
            "{:40} {:8.2} {:8.2} {:8.2}",
            program.name,
            at(0),
            at(50),
            at(95)
        );
    }
    Ok(times.iter().map(|times| times[times.len() / 2]).collect())
}

fn cpu_times(programs: &[Program]) -> Done<()> {
    for program in programs {
        let before = cpu_of_children()?;
        for _ in 0..CPU_ROUNDS {
            program.run()?;
        }
        let each = (cpu_of_children()? - before) / f64::from(CPU_ROUNDS);
        println!("{:40} {:8.2} ms of CPU", program.name, each * 1e3);
    }
    Ok(())
}

/// In seconds, of all that have ended and their children. Those that nobody waited for are not in it.
fn cpu_of_children() -> Done<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no fields")?;
    let ticks = fields.split(' ').skip(13).take(2);
    let ticks: Vec<u32> = ticks.map(str::parse).collect::<Result<_, _>>()?;
    Ok(f64::from(ticks.iter().sum::<u32>()) / TICKS_A_SECOND)
}

fn system_calls(programs: &[Program], folder: &Path) -> Done<()> {
    let counts = folder.join("counts");
    let file = counts.to_string_lossy();
    for program in programs {
        let mut traced = program.command(&["strace", "-f", "-qq", "-c", "-o", &file]);
        if !traced.status().is_ok_and(|status| status.success()) {
            println!("system calls are not counted: strace does not run here");
            return Ok(());
        }
        let table = fs::read_to_string(&counts)?;
        let total = table.lines().find(|line| line.ends_with(" total"));
        let calls = total.and_then(|line| line.split_whitespace().nth(3));
        println!(
            "{:40} {:>8} system calls",
            program.name,
            calls.unwrap_or("?")
        );
    }
    Ok(())
}
