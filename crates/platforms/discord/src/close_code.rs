//! What follows from the end of a connection to the gateway.

/// How a connection ended, as far as it matters for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// The session lives on: what was missed comes again.
    Resumable { why: String },
    /// The session is gone: a new one, and a look into the histories.
    SessionLost { why: String },
    /// Trying again would end the same.
    Final { why: String },
}

/// The code that we close with. The ones below 2000 would end the session with the connection.
pub(crate) const KEEPS_SESSION: u16 = 4000;

impl ConnectionEnd {
    pub(crate) fn by_code(code: u16) -> Self {
        let why = match code {
            4004 => "the bot token is not valid; copy it anew from Discord's developer portal",
            4010..=4011 => {
                "the bot is in too many servers for one connection, which is all we open"
            }
            4012 => "Discord does not speak this version of its gateway any more",
            4013 => "Discord does not know the intents that we asked for",
            4014 => {
                "the message content intent is switched off; switch it on in Discord's developer \
                 portal under Bot, or write `message_content: false` below `discord` to hear private \
                 messages and mentions only"
            }
            4007 => "the session did not fit",
            4009 => "the session timed out",
            _ => "",
        };
        match code {
            4004 | 4010..=4014 => Self::Final {
                why: why.to_owned(),
            },
            4007 | 4009 => Self::SessionLost {
                why: why.to_owned(),
            },
            _ => Self::Resumable {
                why: format!("discord closed the connection with {code}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_consequence() {
        for code in [4004, 4010, 4011, 4012, 4013, 4014] {
            assert!(
                matches!(ConnectionEnd::by_code(code), ConnectionEnd::Final { why } if !why.is_empty())
            );
        }
        for code in [4007, 4009] {
            assert!(matches!(
                ConnectionEnd::by_code(code),
                ConnectionEnd::SessionLost { .. }
            ));
        }
        for code in [
            1000, 1001, 1006, 1011, 4000, 4001, 4002, 4003, 4005, 4008, 4999,
        ] {
            assert!(
                matches!(
                    ConnectionEnd::by_code(code),
                    ConnectionEnd::Resumable { .. }
                ),
                "{code}"
            );
        }
    }
}
