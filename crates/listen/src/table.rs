//! Keeps the connections of one port, and decides which is cut when there is no room.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// The bounds that one port keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionBounds {
    /// Connections at once.
    pub connections: usize,
    /// Of these, how many may come from one address. This machine itself may have all: a reverse proxy
    /// on it speaks for everybody.
    pub each_address: usize,
    /// How long a connection may take from its begin, or from its last answer, to the end of a request's
    /// head; and once more for the request's body.
    pub request_timeout: Duration,
    /// Bytes of bodies that have not come to their end, all connections together.
    pub body_bytes: usize,
}

impl ConnectionBounds {
    /// Returns the bounds of a port with so many connections.
    pub fn of(connections: usize) -> Self {
        let connections = connections.max(2);
        Self {
            connections,
            each_address: connections.div_ceil(2),
            request_timeout: Duration::from_secs(20),
            body_bytes: 64 << 20,
        }
    }
}

/// All connections of one port.
#[derive(Debug)]
pub struct ConnectionTable {
    bounds: ConnectionBounds,
    state: Mutex<OpenConnections>,
}

/// The open connections and what they hold.
#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    open: HashMap<u64, TableEntry>,
    body_bytes: usize,
}

/// One open connection.
#[derive(Debug)]
struct TableEntry {
    from: PeerNetwork,
    phase: ConnectionPhase,
    /// Since when it is in this phase.
    since: Instant,
    body_bytes: usize,
    cut: CancellationToken,
}

/// How far a connection has come, in the order in which connections are cut: whoever never sent anything
/// whole goes before whoever did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionPhase {
    /// No request has come to its end yet.
    Unproven,
    /// At least one was answered; the next has not come to its end.
    Between,
    /// A whole request is being answered.
    Answering,
}

/// The network of a peer, as far as one holder can choose addresses in it: a whole network in IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PeerNetwork(IpAddr);

/// The error of a port where every connection is being answered, or as many from this address as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

/// One connection's entry in the table; dropping it gives it back.
#[derive(Debug)]
pub struct TrackedConnection {
    table: Arc<ConnectionTable>,
    id: u64,
    cut: CancellationToken,
}

impl ConnectionTable {
    pub fn new(bounds: ConnectionBounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            state: Mutex::default(),
        })
    }

    pub fn bounds(&self) -> &ConnectionBounds {
        &self.bounds
    }

    /// Returns how many are connected.
    pub fn len(&self) -> usize {
        self.state().open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes one more in, cutting another where there is no room.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Result<TrackedConnection, TableFull> {
        let from = PeerNetwork::of(peer);
        let mut state = self.state();
        let same = state.open.values().filter(|entry| entry.from == from);
        // The own address first: whoever fills his share pays with a connection of his own, and of
        // nobody else's.
        if !from.is_this_machine() && same.count() >= self.bounds.each_address {
            state.cut_idlest(|entry| entry.from == from)?;
        }
        if state.open.len() >= self.bounds.connections {
            state.cut_idlest(|_| true)?;
        }
        let (id, cut) = (state.next, CancellationToken::new());
        state.next += 1;
        state.open.insert(
            id,
            TableEntry {
                from,
                phase: ConnectionPhase::Unproven,
                since: Instant::now(),
                body_bytes: 0,
                cut: cut.clone(),
            },
        );
        Ok(TrackedConnection {
            table: Arc::clone(self),
            id,
            cut,
        })
    }

    /// Gives one descriptor back, if any connection can be done without.
    pub fn make_room(&self) -> bool {
        self.state().cut_idlest(|_| true).is_ok()
    }

    fn state(&self) -> MutexGuard<'_, OpenConnections> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Cuts whoever has waited longest without a whole request, among those of the address that has most
    /// of them: one address cannot push out another's only connection.
    fn cut_idlest(&mut self, eligible: impl Fn(&TableEntry) -> bool) -> Result<(), TableFull> {
        let idle =
            |entry: &&TableEntry| entry.phase != ConnectionPhase::Answering && eligible(entry);
        let mut waiting: HashMap<PeerNetwork, usize> = HashMap::new();
        for entry in self.open.values().filter(idle) {
            *waiting.entry(entry.from).or_default() += 1;
        }
        let idlest = self
            .open
            .iter()
            .filter(|(_, entry)| idle(entry))
            .min_by_key(|(_, entry)| {
                let neighbours = waiting.get(&entry.from).copied().unwrap_or_default();
                (std::cmp::Reverse(neighbours), entry.phase, entry.since)
            })
            .map(|(id, _)| *id);
        self.cut(idlest.ok_or(TableFull)?);
        Ok(())
    }

    /// Its place is free at once; its descriptor is when its task has noticed.
    fn cut(&mut self, id: u64) {
        if let Some(entry) = self.open.remove(&id) {
            self.body_bytes -= entry.body_bytes;
            entry.cut.cancel();
        }
    }
}

impl TrackedConnection {
    /// The head of a request is here; its body has a deadline of its own.
    pub fn head_came(&self) {
        self.change(|entry| entry.since = Instant::now());
    }

    /// A whole request is here: from now on until its answer is through, this connection stays.
    pub fn request_came(&self) {
        self.enter(ConnectionPhase::Answering);
    }

    /// The answer is through.
    pub fn answered(&self) {
        let mut state = self.table.state();
        let OpenConnections {
            open, body_bytes, ..
        } = &mut *state;
        if let Some(entry) = open.get_mut(&self.id) {
            *body_bytes -= entry.body_bytes;
            entry.body_bytes = 0;
            entry.phase = ConnectionPhase::Between;
            entry.since = Instant::now();
        }
    }

    /// So many more bytes of a body are held in memory. Where all together hold too many, whoever holds
    /// most of what has not come to its end goes.
    pub fn holds(&self, bytes: usize) {
        let mut state = self.table.state();
        if let Some(entry) = state.open.get_mut(&self.id) {
            entry.body_bytes += bytes;
            state.body_bytes += bytes;
        }
        while state.body_bytes > self.table.bounds.body_bytes {
            let idle = state.open.iter();
            let idle = idle.filter(|(_, entry)| entry.phase != ConnectionPhase::Answering);
            let heaviest = idle.max_by_key(|(_, entry)| entry.body_bytes);
            match heaviest.map(|(id, entry)| (*id, entry.body_bytes)) {
                // One that holds nothing is not cut: it would make no room.
                Some((id, 1..)) => state.cut(id),
                _ => return,
            }
        }
    }

    /// Returns when this connection has to go: it was cut, or it let its time pass.
    pub async fn over(&self) {
        tokio::select! {
            () = self.cut.cancelled() => {}
            () = self.overdue() => {}
        }
    }

    /// Returns when this connection was cut to make room.
    pub async fn cut(&self) {
        self.cut.cancelled().await;
    }

    async fn overdue(&self) {
        let request_timeout = self.table.bounds.request_timeout;
        loop {
            let waits = {
                let state = self.table.state();
                state.open.get(&self.id).map(|entry| {
                    let answering = entry.phase == ConnectionPhase::Answering;
                    (!answering).then_some(entry.since + request_timeout)
                })
            };
            match waits {
                None => return,
                Some(Some(deadline)) if deadline <= Instant::now() => return,
                Some(Some(deadline)) => sleep_until(deadline).await,
                // Looked at again later: an answer that goes on has no deadline.
                Some(None) => sleep(request_timeout).await,
            }
        }
    }

    fn enter(&self, phase: ConnectionPhase) {
        self.change(|entry| {
            entry.phase = phase;
            entry.since = Instant::now();
        });
    }

    fn change(&self, change: impl FnOnce(&mut TableEntry)) {
        if let Some(entry) = self.table.state().open.get_mut(&self.id) {
            change(entry);
        }
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        self.table.state().cut(self.id);
    }
}

impl PeerNetwork {
    fn of(peer: IpAddr) -> Self {
        Self(match peer.to_canonical() {
            IpAddr::V6(v6) if !v6.is_loopback() => {
                let [a, b, c, d, ..] = v6.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            other => other,
        })
    }

    fn is_this_machine(self) -> bool {
        self.0.is_loopback()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const BOB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn table(connections: usize) -> Arc<ConnectionTable> {
        ConnectionTable::new(ConnectionBounds::of(connections))
    }

    fn is_cut(connection: &TrackedConnection) -> bool {
        connection.cut.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waited_longest_without_a_request_goes_first() {
        let table = table(4);
        let local = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        let mut open = Vec::new();
        for _ in 0..4 {
            open.push(table.admit(local).unwrap());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        open[0].request_came();
        open[1].request_came();
        open[1].answered();
        let newcomer = table.admit(local).unwrap();
        assert!(is_cut(&open[2]), "the oldest that never said anything");
        let another = table.admit(local).unwrap();
        assert!(is_cut(&open[3]));
        newcomer.request_came();
        another.request_came();
        let third = table.admit(local).unwrap();
        assert!(is_cut(&open[1]), "then who was answered and is silent");
        third.request_came();
        assert_eq!(table.admit(local).unwrap_err(), TableFull);
        assert!(!is_cut(&open[0]), "nobody who is being answered");
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_takes_nobody_elses_place() {
        let table = table(8);
        let bob = table.admit(BOB).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let crowd: Vec<_> = (0..100).map(|_| table.admit(ALICE).unwrap()).collect();
        assert_eq!(table.len(), 5, "half of all, and Bob");
        assert!(!is_cut(&bob));
        assert_eq!(crowd.iter().filter(|one| !is_cut(one)).count(), 4);
        let others = (0..100_u8).map(|n| table.admit([198, 51, 100, n].into()).unwrap());
        let others: Vec<_> = others.collect();
        assert_eq!(table.len(), 8);
        drop((others, crowd, bob));
        assert!(table.is_empty());
    }

    #[test]
    fn a_network_of_addresses_is_one_origin() {
        let origin = |text: &str| PeerNetwork::of(text.parse().unwrap());
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        assert!(origin("::1").is_this_machine() && origin("::ffff:127.0.0.1").is_this_machine());
    }

    #[tokio::test(start_paused = true)]
    async fn the_heaviest_half_sent_body_goes_when_all_hold_too_much() {
        let table = ConnectionTable::new(ConnectionBounds {
            body_bytes: 100,
            ..ConnectionBounds::of(8)
        });
        let [one, two, three] = [ALICE, BOB, BOB].map(|from| table.admit(from).unwrap());
        one.holds(60);
        two.holds(30);
        three.holds(10);
        assert!(![&one, &two, &three].into_iter().any(is_cut));
        three.holds(1);
        assert!(is_cut(&one) && !is_cut(&two) && !is_cut(&three));
        assert_eq!(table.state().body_bytes, 41);
        two.answered();
        assert_eq!(table.state().body_bytes, 11);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_has_a_deadline_and_an_answer_has_none() {
        let table = table(4);
        let silent = table.admit(ALICE).unwrap();
        let answering = table.admit(ALICE).unwrap();
        answering.request_came();
        let begun = Instant::now();
        silent.over().await;
        assert_eq!(begun.elapsed(), table.bounds().request_timeout);
        let hour = Duration::from_secs(3600);
        assert!(tokio::time::timeout(hour, answering.over()).await.is_err());
    }
}
