//! What the program inside is told to do.

use std::collections::BTreeMap;

/// One thing to do, as words of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttackOrder {
    /// Try everything, and look for what others laid out.
    Try {
        host: BaitTarget,
        neighbour: BaitTarget,
    },
    /// Lay a bait out for a neighbour, say `ready PORT`, and wait to be ended.
    LieInWait { token: String },
    /// Start so many processes, or as many as can be had.
    Breed { count: usize },
    /// Fill so many bytes of memory.
    Eat { bytes: usize },
    /// Open so many files, or as many as can be had.
    Hold { count: usize },
}

/// What somebody who must not be seen has laid out. An empty bait was not laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaitTarget {
    /// In the name of each file and each abstract socket, and in a command line.
    pub token: String,
    /// A port on his loopback.
    pub port: u16,
    /// A file of his.
    pub file: String,
}

impl AttackOrder {
    pub fn words(&self) -> Vec<String> {
        let words = match self {
            Self::Try { host, neighbour } => {
                let mut words = vec!["try".to_owned()];
                words.extend(host.words("host"));
                words.extend(neighbour.words("neighbour"));
                return words;
            }
            Self::LieInWait { token } => ["lie-in-wait".to_owned(), token.clone()],
            Self::Breed { count } => ["breed".to_owned(), count.to_string()],
            Self::Eat { bytes } => ["eat".to_owned(), bytes.to_string()],
            Self::Hold { count } => ["hold".to_owned(), count.to_string()],
        };
        words.to_vec()
    }

    pub fn read(words: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut words = words.into_iter();
        let verb = words.next()?;
        if verb == "try" {
            let pairs: BTreeMap<String, String> = words
                .filter_map(|word| {
                    let (key, value) = word.split_once('=')?;
                    Some((key.to_owned(), value.to_owned()))
                })
                .collect();
            return Some(Self::Try {
                host: BaitTarget::read(&pairs, "host"),
                neighbour: BaitTarget::read(&pairs, "neighbour"),
            });
        }
        let what = words.next()?;
        Some(match verb.as_str() {
            "lie-in-wait" => Self::LieInWait { token: what },
            "breed" => Self::Breed {
                count: what.parse().ok()?,
            },
            "eat" => Self::Eat {
                bytes: what.parse().ok()?,
            },
            "hold" => Self::Hold {
                count: what.parse().ok()?,
            },
            _ => return None,
        })
    }
}

impl BaitTarget {
    /// The name of an abstract socket that belongs to it.
    pub fn abstract_name(token: &str) -> String {
        format!("hermetic-attack-{token}")
    }

    fn words(&self, whose: &str) -> [String; 3] {
        [
            format!("{whose}.token={}", self.token),
            format!("{whose}.port={}", self.port),
            format!("{whose}.file={}", self.file),
        ]
    }

    fn read(pairs: &BTreeMap<String, String>, whose: &str) -> Self {
        let value = |name: &str| pairs.get(&format!("{whose}.{name}")).cloned();
        Self {
            token: value("token").unwrap_or_default(),
            port: value("port")
                .and_then(|port| port.parse().ok())
                .unwrap_or(0),
            file: value("file").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_arrive_as_they_were_given() {
        let bait = |token: &str| BaitTarget {
            token: token.to_owned(),
            port: 4711,
            file: "/srv/a=b c".to_owned(),
        };
        for order in [
            AttackOrder::Try {
                host: bait("one"),
                neighbour: bait("two"),
            },
            AttackOrder::LieInWait {
                token: "three".to_owned(),
            },
            AttackOrder::Breed { count: 5 },
            AttackOrder::Eat { bytes: 1 << 40 },
            AttackOrder::Hold { count: 7 },
        ] {
            assert_eq!(AttackOrder::read(order.words()), Some(order));
        }
    }
}
