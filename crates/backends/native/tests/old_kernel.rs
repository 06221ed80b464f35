//! A kernel that lacks what newer ones have, played by a filter: calls that it does not know fail as they
//! would there. And an inner program that dies, which such a kernel made it do.

use std::collections::BTreeMap;
use std::thread;

use hermetic_native::{NativeBackend, NativeConfig};
use hermetic_sandbox::{Backend, GreetError};
use hermetic_types::InstallationId;
use hermetic_warden::client::Warden;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::lab::{Lab, TEST_TIMEOUT, as_root, as_user, spec, why};

const EINVAL: u32 = 22;
const EMFILE: u32 = 24;
const ENOSYS: u32 = 38;

const SYS_MEMFD_CREATE: i64 = if cfg!(target_arch = "x86_64") {
    319
} else {
    279
};
const SYS_PRCTL: i64 = if cfg!(target_arch = "x86_64") {
    157
} else {
    167
};
const SYS_SIGNALFD4: i64 = if cfg!(target_arch = "x86_64") {
    289
} else {
    74
};

/// `quotactl_fd`, the first call that came after `mount_setattr`. The numbers are the same everywhere.
const FIRST_UNKNOWN: i64 = 443;
const LAST_UNKNOWN: i64 = 520;
/// Since 6.4.
const PR_GET_AUXV: u64 = 0x4155_5856;
/// Since 6.3: `MFD_NOEXEC_SEAL` and `MFD_EXEC`.
const NEWER_MEMFD_FLAGS: [u64; 2] = [0x8, 0x10];

/// On a thread of its own, which everything that is started from it takes after.
fn on_a_kernel(lacking: fn(), test: impl FnOnce() + Send + 'static) {
    let told = thread::spawn(move || {
        lacking();
        test();
    });
    if let Err(panic) = told.join() {
        std::panic::resume_unwind(panic);
    }
}

fn like_5_12() {
    let unknown = (FIRST_UNKNOWN..=LAST_UNKNOWN).map(|call| (call, Vec::new()));
    answer(unknown.collect(), SeccompAction::Errno(ENOSYS));
    let one = |number, op, value| {
        let condition = SeccompCondition::new(number, SeccompCmpArgLen::Dword, op, value).unwrap();
        SeccompRule::new(vec![condition]).unwrap()
    };
    let flags = NEWER_MEMFD_FLAGS.map(|flag| one(1, SeccompCmpOp::MaskedEq(flag), flag));
    let refused = BTreeMap::from([
        (SYS_PRCTL, vec![one(0, SeccompCmpOp::Eq, PR_GET_AUXV)]),
        (SYS_MEMFD_CREATE, flags.to_vec()),
    ]);
    answer(refused, SeccompAction::Errno(EINVAL));
}

/// Only the warden asks for this call.
fn without_descriptors_for_signals() {
    let calls = BTreeMap::from([(SYS_SIGNALFD4, Vec::new())]);
    answer(calls, SeccompAction::Errno(EMFILE));
}

fn that_kills_for_it() {
    let calls = BTreeMap::from([(SYS_SIGNALFD4, Vec::new())]);
    answer(calls, SeccompAction::KillProcess);
}

fn answer(calls: BTreeMap<i64, Vec<SeccompRule>>, with: SeccompAction) {
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, with, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

async fn a_command_runs_on_the_oldest_kernel(lab: &Lab) {
    let said = lab.run("echo $((6 * 7)); pwd").await;
    assert_eq!((said.code, said.text.as_str()), (0, "42\n/workspace\n"));
    let readiness = lab.native.readiness().await;
    assert!(readiness.missing().is_none(), "{readiness:?}");
}

/// How greeting a fresh sandbox fails.
async fn greeting(lab: &Lab) -> String {
    let spec = lab.spec();
    let link = lab
        .native
        .create(&spec)
        .await
        .unwrap_or_else(|error| panic!("{}", why(&error)));
    let greeted = Warden::greet(link.into_stream(), TEST_TIMEOUT).await;
    lab.native.destroy(&spec.id).await.unwrap();
    match greeted {
        Err(GreetError::Link(source)) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn a_warden_that_cannot_serve_says_why(lab: &Lab) {
    let why = greeting(lab).await;
    assert!(why.contains("ended with exit code 1"), "{why}");
    assert!(why.contains("the warden cannot serve: "), "{why}");
    assert!(why.contains("os error 24"), "{why}");
    // Built and sealed is not enough for the doctor.
    let readiness = lab.native.readiness().await;
    let missing = readiness.missing().expect("no command can run");
    assert!(
        missing.detail.contains("the warden cannot serve"),
        "{missing:?}"
    );
}

async fn a_warden_that_was_killed_is_told_by_its_signal(lab: &Lab) {
    let why = greeting(lab).await;
    assert_eq!(
        why,
        "the inner program was ended by signal 31 and said nothing"
    );
}

macro_rules! on_kernels {
    ($($name:ident: $kernel:expr;)*) => {
        mod as_root {
            $(#[test] fn $name() {
                super::on_a_kernel($kernel, || {
                    super::as_root(stringify!($name), async |lab| super::$name(lab).await);
                });
            })*
        }
        mod as_user {
            $(#[test] fn $name() {
                let path = concat!(module_path!(), "::", stringify!($name));
                super::on_a_kernel($kernel, || super::as_user(path, async |lab| super::$name(lab).await));
            })*
        }
    };
}
on_kernels! {
    a_command_runs_on_the_oldest_kernel: crate::old_kernel::like_5_12;
    a_warden_that_cannot_serve_says_why: crate::old_kernel::without_descriptors_for_signals;
    a_warden_that_was_killed_is_told_by_its_signal: crate::old_kernel::that_kills_for_it;
}

/// Started as the inner program, this very test program says something and dies; as a test it looks at
/// what became of it. Its name has the word in it that the inner program is started with.
#[test]
fn what_a_dying_cage_said_is_told() {
    const WORDS: &[u8] = b"thread 'main' panicked at cage.rs: out of ideas\n";
    if std::env::args_os()
        .next()
        .is_some_and(|name| name == "hermetic-cage")
    {
        rustix::io::write(rustix::stdio::stderr(), WORDS).unwrap();
        std::process::abort();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let state = tempfile::tempdir().unwrap();
    let installation = InstallationId::random();
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let native = NativeBackend::open(NativeConfig {
        state: state.path().to_owned(),
        installation: installation.clone(),
        program: Box::leak(program.into_boxed_slice()),
        require: Vec::new(),
        authority: None,
        total: hermetic_native::TotalLimits::default(),
    })
    .unwrap();
    let error = runtime
        .block_on(native.create(&spec(&installation)))
        .unwrap_err();
    let error = why(&error);
    let told = ["cannot hear from the cage", "cannot send the plan"];
    assert!(told.iter().any(|step| error.starts_with(step)), "{error}");
    assert!(error.contains("out of ideas"), "{error}");
    assert!(error.contains("signal: 6"), "{error}");
}
