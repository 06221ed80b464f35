//! Just enough of RFC 1035 to lie in.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

/// Answers by name, over UDP and TCP, on the port where resolvers look.
#[derive(Clone)]
pub(crate) struct Liar(Arc<Mutex<HashMap<String, Answer>>>);

#[derive(Clone, Default)]
pub(crate) struct Answer {
    addresses: Vec<IpAddr>,
    living: u32,
    /// Names in between.
    aliases: Vec<String>,
    /// Whom the addresses are said to belong to, where that is somebody else.
    about: Option<String>,
    only_by_tcp: bool,
    failing: u8,
    way: Way,
    /// What is said from the second time on.
    then: Option<Box<Answer>>,
    asked: HashMap<u16, usize>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Way {
    #[default]
    Words,
    Noise,
    Silence,
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

impl Answer {
    pub(crate) fn of(addresses: &[&str]) -> Self {
        Self {
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            living: 60,
            ..Self::default()
        }
    }

    pub(crate) fn failing(code: u8) -> Self {
        Self {
            failing: code,
            ..Self::default()
        }
    }

    pub(crate) fn noise() -> Self {
        Self {
            way: Way::Noise,
            ..Self::default()
        }
    }

    pub(crate) fn silence() -> Self {
        Self {
            way: Way::Silence,
            ..Self::default()
        }
    }

    pub(crate) fn and_then(self, then: Self) -> Self {
        Self {
            then: Some(Box::new(then)),
            ..self
        }
    }

    pub(crate) fn living(self, seconds: u32) -> Self {
        Self {
            living: seconds,
            ..self
        }
    }

    pub(crate) fn behind(self, aliases: &[&str]) -> Self {
        Self {
            aliases: aliases.iter().map(ToString::to_string).collect(),
            ..self
        }
    }

    pub(crate) fn about(self, name: &str) -> Self {
        Self {
            about: Some(name.to_owned()),
            ..self
        }
    }

    pub(crate) fn only_by_tcp(self) -> Self {
        Self {
            only_by_tcp: true,
            ..self
        }
    }
}

impl Liar {
    pub(crate) fn start() -> Self {
        let liar = Self(Arc::default());
        let datagrams = UdpSocket::bind("127.0.0.1:53").unwrap();
        let by_datagram = liar.clone();
        std::thread::spawn(move || {
            let mut query = [0; 4096];
            while let Ok((length, from)) = datagrams.recv_from(&mut query) {
                if let Some(reply) = by_datagram.reply(&query[..length], true) {
                    let _ = datagrams.send_to(&reply, from);
                }
            }
        });
        let listener = TcpListener::bind("127.0.0.1:53").unwrap();
        let by_stream = liar.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let liar = by_stream.clone();
                std::thread::spawn(move || liar.converse(stream));
            }
        });
        liar
    }

    pub(crate) fn tell(&self, name: &str, answer: Answer) {
        self.0.lock().unwrap().insert(name.to_owned(), answer);
    }

    fn converse(&self, mut stream: TcpStream) -> Option<()> {
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length).ok()?;
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).ok()?;
            let reply = self.reply(&query, false)?;
            let length = u16::try_from(reply.len()).ok()?;
            stream.write_all(&length.to_be_bytes()).ok()?;
            stream.write_all(&reply).ok()?;
        }
    }

    fn reply(&self, query: &[u8], by_datagram: bool) -> Option<Vec<u8>> {
        let (name, kind, question) = question(query)?;
        let mut known = self.0.lock().unwrap();
        let Some(answer) = known.get_mut(&name) else {
            return Some(head(query, 3, false, 0, question));
        };
        let asked = answer.asked.entry(kind).or_default();
        *asked += 1;
        let first = *asked == 1;
        let answer = match &answer.then {
            Some(then) if !first => (**then).clone(),
            _ => answer.clone(),
        };
        drop(known);
        match answer.way {
            Way::Silence => return None,
            Way::Noise => {
                let mut noise = query[..2].to_vec();
                noise.extend([0x81, 0x80, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xc0, 0x0c]);
                return Some(noise);
            }
            Way::Words => {}
        }
        if answer.only_by_tcp && by_datagram {
            return Some(head(query, 0, true, 0, question));
        }
        Some(said(query, &answer, &name, kind, question))
    }
}

/// The name it asks for, the kind of record, and all of the question as it stands there.
fn question(query: &[u8]) -> Option<(String, u16, &[u8])> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    Some((labels.join("."), kind, query.get(12..at + 4)?))
}

fn head(query: &[u8], code: u8, cut: bool, answers: u16, question: &[u8]) -> Vec<u8> {
    let mut reply = query[..2].to_vec();
    reply.extend([0x81 | u8::from(cut) << 1, 0x80 | code, 0, 1]);
    reply.extend(answers.to_be_bytes());
    reply.extend([0, 0, 0, 0]);
    reply.extend(question);
    reply
}

fn said(query: &[u8], answer: &Answer, name: &str, kind: u16, question: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    let mut owner = name.to_owned();
    for alias in &answer.aliases {
        records.push(record(&owner, CNAME, answer.living, &encoded(alias)));
        owner.clone_from(alias);
    }
    if let Some(about) = &answer.about {
        owner.clone_from(about);
    }
    for address in &answer.addresses {
        match (address, kind) {
            (IpAddr::V4(v4), A) => {
                records.push(record(&owner, A, answer.living, &v4.octets()));
            }
            (IpAddr::V6(v6), AAAA) => {
                records.push(record(&owner, AAAA, answer.living, &v6.octets()));
            }
            _ => {}
        }
    }
    let count = u16::try_from(records.len()).unwrap();
    let mut reply = head(query, answer.failing, false, count, question);
    reply.extend(records.concat());
    reply
}

fn record(owner: &str, kind: u16, living: u32, data: &[u8]) -> Vec<u8> {
    let mut record = encoded(owner);
    record.extend(kind.to_be_bytes());
    record.extend([0, 1]);
    record.extend(living.to_be_bytes());
    record.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    record.extend(data);
    record
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
