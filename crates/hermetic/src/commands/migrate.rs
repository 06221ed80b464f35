//! `hermetic migrate`: what becomes of a Hermes home, and what of it is copied.
//!
//! Nothing of Hermes' is ever written: its files are read, and `--apply` adds to our own folder. Where our
//! home is theirs, which it is unless somebody says otherwise, the configuration is not copied but shared.

mod belongings;
mod configured;
mod finding;
mod hermes_gateway;
mod hermes_home;
mod jobs;
mod on_behalf;
mod take_over;
mod waiting;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use hermetic_app as app;
use hermetic_config::{Config, ConfigInputs, HomeFolder};
use hermetic_schedule::HermesJobs;
use serde_json::json;

use self::finding::{MigrationFinding, MigrationVerdict};
use self::hermes_gateway::HermesGateway;
use self::hermes_home::{HermesHome, HermesPairings, LeftOut};
use self::take_over::{CopiedFile, CopiedFolder};
pub(crate) use self::waiting::WaitingOfHermes;
use super::{inputs_of_new_home, on_this_thread, packaged_home_of_root, typed_for};
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::folder_reader::FolderReader;
use crate::output::{self, BOLD};
use crate::ownership::{HomeOwner, refuse_root_for_another};
use crate::service::SystemdService;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is written on the side of Hermes, with or without --apply. What --apply does can be done again:
it copies who and what is missing, and replaces no file but a config.yaml that nobody has changed. Links are \
not followed. Root may do it for a home that is somebody else's, such as a package's: it reads, and that user \
writes.

Exits with 1 if something has to be done before a gateway can run.

Examples:
  hermetic migrate
  hermetic migrate --apply
  hermetic --home ~/.hermetic migrate --from ~/.hermes --apply
  sudo hermetic migrate --from /home/ada/.hermes --apply        # into the package's home")]
pub(crate) struct MigrateArgs {
    /// Read this Hermes home, instead of the folder that is Hermetic's as well
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    /// Copy pairings and jobs, and with --from also config.yaml, .env, SOUL.md, memories and skills
    #[arg(long)]
    apply: bool,
    /// Only show what would be done (this is the default)
    #[arg(long, conflicts_with = "apply")]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Everything that was found out about one Hermes home.
struct HomeSurvey {
    is_shared: bool,
    gateways: Vec<HermesGateway>,
    pairings: Vec<HermesPairings>,
    files: Vec<CopiedFile>,
    folders: Vec<CopiedFolder>,
    jobs: HermesJobs,
    findings: Vec<MigrationFinding>,
}

pub(crate) fn run(cli: &CommandLine, args: &MigrateArgs) -> Result<ExitReason, CommandFailure> {
    let mut ours = inputs_of_new_home(cli)?;
    if let Some(packaged) = packaged_home_of_root(cli).filter(|_| args.from.is_some()) {
        ours.home = packaged;
    }
    let theirs = match &args.from {
        Some(from) => absolute(from),
        None => ours.home.root().to_owned(),
    };
    let hermes = HermesHome::at(&theirs);
    if !hermes.is_there() {
        return Err(CommandFailure::new(
            format!("{} holds nothing of Hermes", theirs.display()),
            "name its home: hermetic migrate --from FOLDER",
        ));
    }
    let mut survey = survey(&ours, &theirs, &hermes);
    if args.apply {
        apply(&ours, &theirs, &mut survey)?;
    }
    report(&theirs, &ours.home, &survey, args)?;
    let is_blocked = survey
        .findings
        .iter()
        .any(|one| one.verdict == MigrationVerdict::First);
    Ok(if is_blocked {
        ExitReason::Failed
    } else {
        ExitReason::Ok
    })
}

fn apply(
    ours: &ConfigInputs,
    theirs: &Path,
    survey: &mut HomeSurvey,
) -> Result<(), CommandFailure> {
    match HomeOwner::of(&ours.home) {
        Some(owner) if !survey.is_shared => {
            let left_out = on_behalf::take_over(theirs, &ours.home, &owner)?;
            let folders = survey.folders.iter().flat_map(CopiedFolder::left_out);
            let told: HashSet<_> = folders.map(|one| one.path.clone()).collect();
            let left_out = left_out.iter().filter(|one| !told.contains(&one.path));
            survey.findings.extend(left_out.map(|one| {
                let what = format!("not copied: {}: {}", one.path.display(), one.why);
                MigrationFinding::new(MigrationVerdict::Lost, "files", what)
            }));
            return Ok(());
        }
        _ => refuse_root_for_another(&ours.home)?,
    }
    let adopted = on_this_thread(async {
        take_over::take_over(ours, &survey.files, &survey.folders, &survey.pairings).await?;
        jobs::take_over(ours, &survey.jobs, !survey.gateways.is_empty()).await?;
        Ok(ExitReason::Ok)
    });
    adopted.map(drop)
}

/// Gateways of Hermes that stand in the way of one with this configuration, by their pids.
pub(crate) fn running_hermes(config: &Config) -> Vec<u32> {
    let hermes = HermesHome::at(config.home().root());
    let running = hermes_gateway::running(&hermes, Some(config));
    running.into_iter().map(|gateway| gateway.pid).collect()
}

fn survey(ours: &ConfigInputs, theirs: &Path, hermes: &HermesHome) -> HomeSurvey {
    let is_shared = is_same(ours.home.root(), theirs);
    let inputs = ConfigInputs {
        home: HomeFolder::at(theirs),
        ..ours.clone()
    };
    let loaded = hermetic_config::load(&inputs);
    let gateways = hermes_gateway::running(hermes, loaded.as_ref().ok());
    let (pairings, left_out) = hermes.pairings(app::named_on);
    let is_for_another = HomeOwner::of(&ours.home).is_some();
    let reader = || match is_for_another {
        true => on_behalf::reader(theirs),
        false => FolderReader::default(),
    };
    let (files, folders) = match is_shared {
        true => Default::default(),
        false => (
            take_over::files(&inputs.home, &ours.home),
            take_over::folders(&inputs.home, &ours.home, reader),
        ),
    };
    let mut findings: Vec<_> = gateways.iter().map(in_the_way).collect();
    findings.extend(configured::findings(hermes, &inputs, &loaded));
    findings.extend(files.iter().map(CopiedFile::finding));
    findings.extend(folders.iter().flat_map(CopiedFolder::findings));
    findings.extend(paired(hermes, &pairings, &left_out));
    let jobs = jobs::read(hermes);
    findings.extend(jobs::findings(&jobs));
    let theirs_counts = |one: &MigrationFinding| {
        // Ours is what the model is told then, whatever theirs says.
        !files
            .iter()
            .any(|file| file.leaves_ours("SOUL.md") && one.subject == "SOUL.md")
    };
    findings.extend(
        belongings::findings(hermes)
            .into_iter()
            .filter(theirs_counts),
    );
    HomeSurvey {
        is_shared,
        gateways,
        pairings,
        files,
        folders,
        jobs,
        findings,
    }
}

fn in_the_way(gateway: &HermesGateway) -> MigrationFinding {
    let HermesGateway { pid, holds } = gateway;
    let what = match holds {
        Some(platform) => format!(
            "a gateway of Hermes runs (pid {pid}) on the account for {platform} that is configured here: \
             two of them take each other's messages"
        ),
        None => format!(
            "a gateway of Hermes runs from this home (pid {pid}): two of them on one account take each \
             other's messages"
        ),
    };
    MigrationFinding::new(MigrationVerdict::First, "Hermes", what)
        .remedy("`hermes gateway stop` before `hermetic gateway run`, and `hermes gateway uninstall` if it is a service")
}

fn paired(
    hermes: &HermesHome,
    pairings: &[HermesPairings],
    left_out: &[LeftOut],
) -> Vec<MigrationFinding> {
    let mut findings = Vec::new();
    for HermesPairings {
        platform,
        people,
        unreadable,
    } in pairings
    {
        if !people.is_empty() {
            let who: Vec<_> = people.iter().map(|one| one.user.as_str()).take(5).collect();
            let more = if people.len() > who.len() {
                ", …"
            } else {
                ""
            };
            let what = format!(
                "{platform}: {} let in by a code ({}{more})",
                count(people.len(), "person", "people"),
                who.join(", ")
            );
            findings.push(MigrationFinding::new(
                MigrationVerdict::Copied,
                "pairings",
                what,
            ));
        }
        if *unreadable > 0 {
            let what = format!("{platform}: {unreadable} entries name nobody there");
            findings.push(MigrationFinding::new(
                MigrationVerdict::Lost,
                "pairings",
                what,
            ));
        }
    }
    for LeftOut { file, why } in left_out {
        let what = format!("{}: {why}", file.display());
        findings.push(MigrationFinding::new(
            MigrationVerdict::Lost,
            "pairings",
            what,
        ));
    }
    let codes = hermes.open_codes();
    if codes > 0 {
        let what = format!(
            "{} that nobody answered {} not taken over",
            count(codes, "code", "codes"),
            if codes == 1 { "is" } else { "are" }
        );
        let found = MigrationFinding::new(MigrationVerdict::Different, "pairings", what);
        findings.push(found.remedy("whoever writes is given a new one"));
    }
    findings
}

fn report(
    theirs: &Path,
    home: &HomeFolder,
    survey: &HomeSurvey,
    args: &MigrateArgs,
) -> Result<(), CommandFailure> {
    if args.json {
        let gateways = survey.gateways.iter();
        let gateways = gateways.map(|one| json!({"pid": one.pid, "platform": one.holds}));
        return output::print_json(&json!({
            "hermes": theirs,
            "home": home.root(),
            "shared": survey.is_shared,
            "applied": args.apply,
            "gateways": gateways.collect::<Vec<_>>(),
            "findings": survey.findings,
        }));
    }
    let shared = match survey.is_shared {
        true => format!(
            "This is Hermetic's home as well: both read config.yaml and .env, so a change there is a change\n\
             for both. What Hermetic itself keeps is in {}.\n",
            home.state().display()
        ),
        false => format!("Hermetic's home is {}.\n", home.root().display()),
    };
    output::print(&format!(
        "{BOLD}Hermes{BOLD:#} {}\n{shared}{}\n{}",
        theirs.display(),
        finding::as_text(&survey.findings, args.apply),
        next(survey, home, args.apply)
    ))
}

fn next(survey: &HomeSurvey, home: &HomeFolder, is_applied: bool) -> String {
    let findings = &survey.findings;
    let copies = findings
        .iter()
        .any(|one| one.verdict == MigrationVerdict::Copied);
    let blocked = findings
        .iter()
        .any(|one| one.verdict == MigrationVerdict::First);
    let mut steps = Vec::new();
    if blocked {
        steps.push("what stands first above".to_owned());
    }
    if copies && !is_applied {
        steps.push(match survey.is_shared {
            true => "`hermetic migrate --apply`".to_owned(),
            false => "the same with `--apply`".to_owned(),
        });
    }
    steps.push(format!(
        "`{} doctor`: whether this machine can run sandboxes, and the platforms know the accounts",
        typed_for(home)
    ));
    steps.push(match SystemdService::is_packaged_home(home) {
        true => "`sudo systemctl enable --now hermetic-gateway`".to_owned(),
        false => "`hermetic gateway run`, or `hermetic gateway install` for a service".to_owned(),
    });
    let steps: Vec<_> = (1..)
        .zip(steps)
        .map(|(number, step)| format!("  {number}  {step}\n"))
        .collect();
    let changed = match is_applied {
        true => "Nothing of Hermes' was changed.",
        false => "Nothing was changed.",
    };
    format!("{changed} Next:\n{}", steps.concat())
}

fn count(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
