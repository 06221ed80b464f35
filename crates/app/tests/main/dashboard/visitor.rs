//! Somebody with a browser, as far as HTTP goes.

use std::net::SocketAddr;

use hermetic_dashboard::{AccessKey, DashboardRole, access_link, access_token};
use hermetic_types::Clock as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::lab::Lab;

/// One browser, with its cookie.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) address: SocketAddr,
    pub(super) cookie: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// What a form of this page has to bring along.
    pub(super) fn csrf(&self) -> String {
        let (_, rest) = self
            .body
            .split_once("name=\"csrf\" value=\"")
            .expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Visitor {
    /// Somebody who is not in.
    pub(super) fn stranger(lab: &Lab) -> Self {
        Self {
            address: lab.health(),
            cookie: None,
        }
    }

    /// Somebody who got in by a link.
    pub(super) async fn entered(lab: &Lab, role: DashboardRole, name: &str) -> Self {
        let mut visitor = Self::stranger(lab);
        visitor.enter(&link(lab, role, name)).await;
        visitor
    }

    /// Follows a link and presses the button that is there.
    pub(super) async fn enter(&mut self, link: &str) -> Answer {
        let asked = self.get(link).await;
        assert_eq!(asked.status, 200, "{asked:?}");
        let entered = self.post(link, "").await;
        assert_eq!(entered.status, 303, "{entered:?}");
        let cookie = entered.header("set-cookie").expect("a cookie");
        self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        entered
    }

    pub(super) async fn operator(lab: &Lab) -> Self {
        Self::entered(lab, DashboardRole::Operator, "ada").await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(
            &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.address),
            "",
        )
        .await
    }

    /// Sends a form as a page of ours does.
    pub(super) async fn post(&self, path: &str, form: &str) -> Answer {
        let origin = format!("Origin: http://{}\r\n", self.address);
        self.post_from(path, form, &origin).await
    }

    /// Sends it with these headers about where it comes from.
    pub(super) async fn post_from(&self, path: &str, form: &str, headers: &str) -> Answer {
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\n{kind}{headers}",
            self.address
        );
        self.send(&head, form).await
    }

    /// Sends a form with the token that this page of ours has.
    pub(super) async fn act(&self, page: &str, path: &str, form: &str) -> Answer {
        let csrf = self.get(page).await.csrf();
        self.post(path, &format!("csrf={csrf}&{form}")).await
    }

    /// Everything that comes back until the connection ends.
    pub(super) async fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = self.open(head, body).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// A connection on which this was asked.
    pub(super) async fn open(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let cookie = match &self.cookie {
            Some(cookie) => format!("Cookie: {cookie}\r\n"),
            None => String::new(),
        };
        let length = match body {
            "" => String::new(),
            body => format!("Content-Length: {}\r\n", body.len()),
        };
        let request = format!("{head}{cookie}{length}Connection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

/// A path that lets somebody in once.
pub(super) fn link(lab: &Lab, role: DashboardRole, name: &str) -> String {
    let key = key(lab);
    let link = access_link(&key, role, name, lab.clock().now()).unwrap();
    format!("/enter?key={link}")
}

/// A token for a program.
pub(super) fn token(lab: &Lab, role: DashboardRole) -> String {
    let day = std::time::Duration::from_secs(86_400);
    access_token(&key(lab), role, "cron", lab.clock().now(), day).unwrap()
}

fn key(lab: &Lab) -> AccessKey {
    AccessKey::load_or_create(&lab.config().home().state()).unwrap()
}
