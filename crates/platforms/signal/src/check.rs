//! Whether the daemon answers, has our account, and leaves messages at Signal's servers while we are away.

use hermetic_chat::{AccountCheck, AccountShortcoming, CheckError};

use crate::SignalAdapter;
use crate::rpc::SignalCallError;

/// The first version that reads messages from senders who are not shown, as most are since 2026.
const READS_ALL: (u32, u32, u32) = (0, 14, 5);

impl SignalAdapter {
    pub(crate) async fn check_account(&self) -> Result<AccountCheck, CheckError> {
        if self.daemon.is_socket() {
            // Whoever is connected is handed messages, and this is not the one who answers them.
            return Ok(AccountCheck {
                name: Some(self.number.clone()),
                shortcomings: vec![not_asked()],
            });
        }
        let answer = self.daemon.ping().await?;
        self.daemon.prove_account().await?;
        let mut shortcomings = Vec::new();
        shortcomings.extend(answer["version"].as_str().and_then(too_old));
        if self.daemon.receives_without_us().await? {
            shortcomings.push(received_elsewhere());
        }
        Ok(AccountCheck {
            name: Some(self.number.clone()),
            shortcomings,
        })
    }
}

fn not_asked() -> AccountShortcoming {
    AccountShortcoming {
        problem: "a daemon on a socket is not asked: it would hand messages to whoever asks"
            .to_owned(),
        remedy: "`hermetic status` shows whether the gateway is connected; start the daemon with \
                 --receive-mode=on-connection"
            .to_owned(),
    }
}

fn received_elsewhere() -> AccountShortcoming {
    AccountShortcoming {
        problem: "signal-cli receives messages already: for this gateway if it runs, and if it does not, for \
                  nobody, and they are lost"
            .to_owned(),
        remedy: "start its daemon with --receive-mode=on-connection".to_owned(),
    }
}

/// One whose version cannot be read is not judged.
fn too_old(version: &str) -> Option<AccountShortcoming> {
    let mut numbers = version.split(['.', '-']).map(str::parse);
    let mut number = || numbers.next()?.ok();
    let found = (number()?, number()?, number().unwrap_or(0));
    (found < READS_ALL).then(|| AccountShortcoming {
        problem: format!("signal-cli {version} loses messages whose sender is sealed"),
        remedy: "take 0.14.5 or newer".to_owned(),
    })
}

impl From<SignalCallError> for CheckError {
    fn from(error: SignalCallError) -> Self {
        let description = error.to_string();
        match error {
            error if error.lacks_account() => Self::Unauthorized { description },
            SignalCallError::Refused(_)
            | SignalCallError::Status { .. }
            | SignalCallError::Wrapper => Self::Refused { description },
            other => Self::Unreachable(Box::new(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        for old in ["0.13.19", "0.14.4", "0.14", "0.14.4-SNAPSHOT"] {
            assert!(too_old(old).is_some(), "{old}");
        }
        for new in ["0.14.5", "0.15.0", "1.0", "unknown", ""] {
            assert!(too_old(new).is_none(), "{new}");
        }
    }
}
