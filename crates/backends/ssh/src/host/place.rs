//! Getting the program onto the remote host, and being sure of it.
//!
//! It goes into `~/.hermetic/INSTALLATION`, a folder of the account's own that nobody else may enter,
//! under a name that holds its checksum. A folder that belongs to somebody else, or that others may
//! open, is not used: what lies there could have been put there by another.
//!
//! The lines below are read by whatever shell the account has. So they are one `sh -c` each, in single
//! quotes and without a line end, an exclamation mark or a quote inside.

use hermetic_sandbox::BackendError;
use hermetic_types::InstallationId;
use sha2::{Digest, Sha256};

use super::SshConfig;
use super::channel::ScriptResult;

/// What commands go through on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemoteProgram {
    /// A warden for each sandbox.
    Warden,
    /// No program of ours runs there; why. Commands go by a plain shell.
    Nothing(String),
}

/// The program that is uploaded, and where to.
#[derive(Clone, Debug)]
pub(super) struct ProgramUpload {
    name: String,
    sum: String,
    bytes: &'static [u8],
    folder: String,
}

/// What a look at the host came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UploadCheck {
    Ready,
    /// It is not there, or not what it should be.
    Absent,
    /// It does not run there, for this reason.
    Never(String),
    /// Something is there that we do not touch.
    Refused {
        what: String,
        remedy: String,
    },
}

/// The machine this program was built for, as `uname -sm` says it.
const MACHINE: &str = if cfg!(target_arch = "x86_64") {
    "Linux x86_64"
} else {
    "Linux aarch64"
};

/// What the program answers to no words at all: sysexits(3), usage.
const RAN: &str = "ran 64";

impl ProgramUpload {
    pub(super) fn new(config: &SshConfig) -> Self {
        let sum: String = Sha256::digest(config.program)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            name: format!("warden-{}", &sum[..32]),
            sum,
            bytes: config.program,
            folder: folder(&config.installation),
        }
    }

    pub(super) fn bytes(&self) -> &'static [u8] {
        self.bytes
    }

    /// Runs the program, where it is ours. Anything else ends with 69.
    pub(super) fn run(&self) -> String {
        let Self { name, folder, .. } = self;
        format!(
            "exec sh -c '{}exec ./{name} remote; exit 69'",
            enter(folder)
        )
    }

    /// Says what the machine is and what is there; makes the folder.
    pub(super) fn look(&self) -> String {
        let Self { name, folder, .. } = self;
        format!(
            "exec sh -c 'umask 077; echo; echo \"hermetic $(uname -s) $(uname -m)\"; \
             mkdir -p \"{folder}\" || exit 0; cd -P \"{folder}\" || exit 0; echo entered; \
             for d in . ..; do [ -O $d ] || echo foreign; \
             case $(ls -ld $d) in d???------*) ;; *) echo open;; esac; done; \
             find . -maxdepth 1 -type f -mtime +30 -name \"warden-*\" -exec rm -f {{}} +; \
             find . -maxdepth 1 -type f -mtime +1 -name \"up.*\" -exec rm -f {{}} +; \
             [ -f {name} ] || exit 0; touch {name}; \
             echo sum $(sha256sum < {name} || shasum -a 256 < {name} || cksum < {name}); \
             ./{name}; echo ran $?'"
        )
    }

    /// Takes the program from its stdin. It has its name only when all of it is there.
    pub(super) fn receive(&self) -> String {
        let Self { name, folder, .. } = self;
        let size = self.bytes.len();
        format!(
            "exec sh -c 'umask 077; {}cat > up.$$ && [ $(wc -c < up.$$) -eq {size} ] && \
             chmod 700 up.$$ && mv -f up.$$ {name} && echo placed && exit 0; \
             rm -f up.$$; exit 74'",
            enter(folder)
        )
    }

    pub(super) fn understand(
        &self,
        config: &SshConfig,
        said: &ScriptResult,
    ) -> Result<UploadCheck, BackendError> {
        // A login may have printed something before.
        let mut lines = said.out.lines().map(str::trim);
        let Some(machine) = lines.find_map(|line| line.strip_prefix("hermetic ")) else {
            return Err(super::trouble::not_answered(config, &said.err));
        };
        let lines: Vec<&str> = lines.collect();
        let has = |word: &str| lines.contains(&word);
        if !has("entered") {
            let why = said.err.lines().next_back().unwrap_or("no home folder");
            let to = config.destination();
            return Ok(UploadCheck::Refused {
                what: format!("no folder of ours can be made on {to}: {why}"),
                remedy: "give the account a home folder that it can write to".to_owned(),
            });
        }
        // Before anything else that was said there: in a folder that others can write to, none of
        // it can be believed.
        if has("foreign") || has("open") {
            let to = config.destination();
            return Ok(UploadCheck::Refused {
                what: format!(
                    "~/.hermetic on {to} is not private: others could have put something there"
                ),
                remedy: format!(
                    "look at what is in it; then remove it, or give it to {to} alone: chmod -R go= ~/.hermetic"
                ),
            });
        }
        if machine != MACHINE {
            return Ok(UploadCheck::Never(format!(
                "the host is {machine}, the program is for {MACHINE}"
            )));
        }
        let sum = lines.iter().find_map(|line| line.strip_prefix("sum "));
        match sum {
            // Checked and run: a program that is whole may still be of no use, as where the folder
            // is mounted `noexec`.
            Some(sum) if sum.starts_with(&self.sum) && has(RAN) => Ok(UploadCheck::Ready),
            // It is whole and does not run: a folder mounted `noexec`, for example.
            Some(sum) if sum.starts_with(&self.sum) => {
                let why = said.err.lines().next_back().unwrap_or("it ends at once");
                Ok(UploadCheck::Never(format!(
                    "the program does not run there: {why}"
                )))
            }
            // No program there can check it by SHA-256; its size was checked when it came.
            Some(sum) if is_cksum(sum, self.bytes.len()) && has(RAN) => Ok(UploadCheck::Ready),
            _ => Ok(UploadCheck::Absent),
        }
    }
}

fn folder(installation: &InstallationId) -> String {
    format!("$HOME/.hermetic/{installation}")
}

/// Goes into the folder and makes sure of it: what follows runs only where it is ours alone.
fn enter(folder: &str) -> String {
    format!(
        "cd -P \"{folder}\" && [ -O . ] || exit 69; \
         case $(ls -ld .) in d???------*) ;; *) exit 69;; esac; "
    )
}

/// `cksum` prints a number and the size.
fn is_cksum(sum: &str, size: usize) -> bool {
    let words: Vec<&str> = sum.split_whitespace().collect();
    matches!(words[..], [_, bytes] if bytes == size.to_string())
}
