//! Ports on which platforms call us: one for each address that is configured.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use hermetic_chat::HttpIntake;
use hermetic_types::AccountId;
use tokio::net::TcpListener;
use tracing::info;

use super::{ChatAccount, ListenAddress};
use crate::AppFailure;

/// What is answered on one port, before it is opened.
pub(super) struct ListenPort {
    address: ListenAddress,
    accounts: Vec<AccountId>,
    paths: BTreeSet<String>,
    routes: Router,
}

/// Opens the ports. Accounts whose addresses are the same share one.
pub(crate) async fn listen(
    accounts: &[ChatAccount],
) -> Result<Vec<(TcpListener, Router)>, AppFailure> {
    let mut listening = Vec::new();
    // All are put together before the first is opened: what is refused leaves no port behind.
    for port in ports(accounts)? {
        listening.push((bind(&port).await?, port.routes));
    }
    Ok(listening)
}

/// What will be listened to, or why it cannot be.
pub(super) fn ports(accounts: &[ChatAccount]) -> Result<Vec<ListenPort>, AppFailure> {
    let mut ports: Vec<ListenPort> = Vec::new();
    for account in accounts {
        let intake = Arc::clone(&account.chat).intake();
        let (Some(address), Some(intake)) = (&account.listen, intake) else {
            continue;
        };
        let account = account.chat.account().clone();
        // Port 0 is any that is free, so two of them are two.
        let same = |port: &&mut ListenPort| {
            let theirs = (&port.address.host, port.address.port);
            theirs == (&address.host, address.port) && address.port != 0
        };
        match ports.iter_mut().find(same) {
            Some(port) => port.add(account, intake)?,
            None => {
                let mut port = ListenPort::new(address.clone());
                port.add(account, intake)?;
                ports.push(port);
            }
        }
    }
    Ok(ports)
}

/// That no two of these ports, and none of them and that of the gateway itself, would be the same socket.
pub(super) fn kept_apart(ports: &[ListenPort], own: &ListenAddress) -> Result<(), AppFailure> {
    for (place, port) in ports.iter().enumerate() {
        let others = ports[..place].iter().map(|other| &other.address);
        let mut before = others.chain([own]);
        let Some(taken) = before.find(|other| other.overlaps(&port.address)) else {
            continue;
        };
        let ListenAddress {
            host,
            port,
            setting,
        } = &port.address;
        return Err(AppFailure::new(
            format!(
                "{setting} is {host}:{port}, and {} is {}:{}: only one can listen there",
                taken.setting, taken.host, taken.port
            ),
            format!("write another {setting} or another {}", taken.setting),
        ));
    }
    Ok(())
}

impl ListenAddress {
    /// Whether both cannot be listened on at once. Port 0 is any that is free.
    fn overlaps(&self, other: &Self) -> bool {
        if self.port != other.port || self.port == 0 {
            return false;
        }
        match (self.ip(), other.ip()) {
            (Some(one), Some(two)) => one == two || covers(one, two) || covers(two, one),
            // What a name stands for is known when it is looked up.
            _ => self.host == other.host,
        }
    }

    fn ip(&self) -> Option<IpAddr> {
        match self.host.as_str() {
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            host => host.trim_matches(['[', ']']).parse().ok(),
        }
    }
}

/// Whether listening on `wide` takes the port of `other` too. `::` stands for both families.
fn covers(wide: IpAddr, other: IpAddr) -> bool {
    wide.is_unspecified() && (wide.is_ipv6() || other.is_ipv4())
}

impl ListenPort {
    fn new(address: ListenAddress) -> Self {
        Self {
            address,
            accounts: Vec::new(),
            paths: BTreeSet::new(),
            routes: Router::new(),
        }
    }

    fn add(&mut self, account: AccountId, intake: HttpIntake) -> Result<(), AppFailure> {
        if !self.paths.insert(intake.path.clone()) {
            let ListenAddress { host, port, .. } = &self.address;
            return Err(AppFailure::new(
                format!(
                    "two chats are called at {host}:{port}/{}: {account} and another",
                    intake.path
                ),
                format!("write another path or another {}", self.address.setting),
            ));
        }
        self.routes = std::mem::take(&mut self.routes).merge(intake.mounted());
        self.accounts.push(account);
        Ok(())
    }
}

async fn bind(port: &ListenPort) -> Result<TcpListener, AppFailure> {
    let ListenAddress {
        host,
        port: number,
        setting,
    } = &port.address;
    let names: Vec<_> = port.accounts.iter().map(ToString::to_string).collect();
    let accounts = names.join(", ");
    let listener = TcpListener::bind((host.as_str(), *number)).await;
    let listener = listener.map_err(|error| {
        AppFailure::new(
            format!("cannot listen on {host}:{number} for {accounts}: {error}"),
            format!("end whoever has that port, or write another {setting}"),
        )
    })?;
    if let Ok(address) = listener.local_addr() {
        info!(accounts, webhook = %address, "messages are taken here");
    }
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use futures::stream::{self, BoxStream, StreamExt};
    use hermetic_chat::{
        Capabilities, Chat, ChatReply, ChatState, MissedMessages, ReceiveError, ReceivedEvent,
        Redelivery, ReplyRule, ReportedChanges, SendError, TextLimit, UnaskedMessages,
    };
    use hermetic_types::{ChatPlace, MessageId};
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// An account that is called at a path and does nothing else.
    #[derive(Debug)]
    struct Called {
        account: AccountId,
        path: &'static str,
    }

    const CAPABILITIES: Capabilities = Capabilities {
        text: TextLimit::characters(1000),
        edits: false,
        reports_changes: ReportedChanges::NONE,
        buttons: None,
        files_in: None,
        files_out: None,
        threads: false,
        typing: None,
        redelivery: Redelivery::Always,
        missed: MissedMessages::Repeated,
        send_keys: None,
        ordered_messages: false,
        replies: ReplyRule::Free,
        unasked: UnaskedMessages::AnyTime,
    };

    impl Chat for Called {
        fn account(&self) -> &AccountId {
            &self.account
        }

        fn capabilities(&self) -> &Capabilities {
            &CAPABILITIES
        }

        fn state(&self) -> ChatState {
            ChatState::Connected
        }

        fn receive(
            &self,
            _: CancellationToken,
        ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
            stream::pending().boxed()
        }

        fn intake(self: Arc<Self>) -> Option<HttpIntake> {
            let answer = self.account.to_string();
            let router = Router::new().route("/", axum::routing::get(async || answer));
            let path = self.path.to_owned();
            Some(HttpIntake { path, router })
        }

        fn send<'a>(
            &'a self,
            _: &'a ChatPlace,
            _: &'a ChatReply,
        ) -> futures::future::BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    fn called(account: &str, path: &'static str, port: u16) -> ChatAccount {
        ChatAccount {
            chat: Arc::new(Called {
                account: account.parse().unwrap(),
                path,
            }),
            listen: Some(ListenAddress {
                host: "127.0.0.1".to_owned(),
                port,
                setting: "port",
            }),
        }
    }

    fn by_port(accounts: &[ChatAccount]) -> Vec<Vec<String>> {
        let ports = ports(accounts).unwrap().into_iter();
        ports
            .map(|port| port.accounts.iter().map(ToString::to_string).collect())
            .collect()
    }

    #[test]
    fn accounts_of_one_address_share_a_port() {
        let accounts = [
            called("telegram", "one", 8443),
            called("telegram/work", "two", 8443),
            called("webhook", "", 8644),
            called("slack", "", 0),
            called("discord", "", 0),
        ];
        assert_eq!(
            by_port(&accounts),
            [
                vec!["telegram", "telegram/work"],
                vec!["webhook"],
                vec!["slack"],
                vec!["discord"]
            ]
        );
    }

    #[test]
    fn what_one_listens_on_is_left_alone_by_the_others() {
        let address = |host: &str, port| ListenAddress {
            host: host.to_owned(),
            port,
            setting: "gateway.dashboard.port",
        };
        let ports = ports(&[called("telegram", "one", 9119)]).unwrap();
        for (host, port, is_free) in [
            ("127.0.0.1", 9119, false),
            ("localhost", 9119, false),
            ("0.0.0.0", 9119, false),
            ("[::]", 9119, false),
            ("::1", 9119, true),
            ("127.0.0.2", 9119, true),
            ("127.0.0.1", 9120, true),
        ] {
            let own = address(host, port);
            assert_eq!(kept_apart(&ports, &own).is_ok(), is_free, "{host}:{port}");
        }
        let any = self::ports(&[called("telegram", "one", 0)]).unwrap();
        assert!(kept_apart(&any, &address("127.0.0.1", 0)).is_ok());
        let wide = ChatAccount {
            listen: Some(address("0.0.0.0", 8443)),
            ..called("slack", "two", 8443)
        };
        let both = self::ports(&[called("telegram", "one", 8443), wide]).unwrap();
        let failure = kept_apart(&both, &address("127.0.0.1", 9119)).unwrap_err();
        assert!(failure.to_string().contains("0.0.0.0:8443"), "{failure}");
    }

    #[test]
    fn two_chats_at_one_path_are_refused() {
        let accounts = [
            called("telegram", "hook", 8443),
            called("telegram/work", "hook", 8443),
        ];
        let failure = ports(&accounts).err().unwrap().to_string();
        assert!(failure.contains("127.0.0.1:8443/hook"), "{failure}");
    }
}
