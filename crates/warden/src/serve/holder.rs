//! Which gateway has this sandbox.
//!
//! Gateways that share an installation hand conversations to each other, and one that was asleep may wake
//! with a command on its lips after another has taken over. So each says since which epoch it has the
//! sandbox, and the highest that was said counts: links of lower ones are cut at that moment, with whatever
//! they had sent and was not begun, and refused from then on. A link that says nothing has it by zero, which is
//! what gateways from before there were holders do, and those that share with nobody.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use hermetic_types::HolderEpoch;
use tokio::sync::Notify;

use crate::protocol::{FailureKind, HoldRequest, WardenFailure, WardenReply};

/// The highest epoch that was said, and who is connected.
#[derive(Debug, Default)]
pub(crate) struct HolderTable {
    highest: Cell<HolderEpoch>,
    links: RefCell<Vec<Weak<HolderLink>>>,
}

/// One connected gateway, by the epoch that it said.
#[derive(Debug, Default)]
pub(crate) struct HolderLink {
    /// Nothing as long as it has asked for nothing: it may be about to say a higher one than all.
    said: Cell<Option<HolderEpoch>>,
    is_cut: Cell<bool>,
    cut: Notify,
}

impl HolderTable {
    pub(crate) fn join(&self) -> Rc<HolderLink> {
        let link = Rc::new(HolderLink::default());
        let mut links = self.links.borrow_mut();
        links.retain(|known| known.strong_count() > 0);
        links.push(Rc::downgrade(&link));
        link
    }

    /// Takes the word of a link for whose it is.
    pub(crate) fn hold(&self, link: &HolderLink, request: HoldRequest) -> WardenReply {
        let highest = self.highest.get();
        let epoch = match request {
            HoldRequest::As(epoch) => epoch,
            HoldRequest::Visit => highest,
        };
        if epoch < highest {
            return WardenReply::HeldBy(highest);
        }
        link.said.set(Some(epoch));
        // Before this is answered: whoever hears that it holds the sandbox is the only one that acts there.
        self.highest.set(epoch);
        for other in self.links.borrow().iter().filter_map(Weak::upgrade) {
            if other.said.get().is_some_and(|said| self.is_past(said)) {
                other.end();
            }
        }
        WardenReply::Done
    }

    /// By which epoch the link may act; a refusal where a later one was said.
    pub(crate) fn admit(&self, link: &HolderLink) -> Result<HolderEpoch, WardenFailure> {
        let said = link.said.get().unwrap_or_default();
        link.said.set(Some(said));
        if self.is_past(said) {
            return Err(held_elsewhere());
        }
        Ok(said)
    }

    /// Whether somebody with a higher one was greeted.
    pub(crate) fn is_past(&self, epoch: HolderEpoch) -> bool {
        epoch < self.highest.get()
    }
}

impl HolderLink {
    /// Ends the link and every call on it, now.
    pub(crate) fn end(&self) {
        self.is_cut.set(true);
        self.cut.notify_waiters();
    }

    pub(crate) async fn until_cut(&self) {
        loop {
            let mut cut = std::pin::pin!(self.cut.notified());
            // Listening before looking: a cut between the two would be waited for in vain.
            cut.as_mut().enable();
            if self.is_cut.get() {
                return;
            }
            cut.await;
        }
    }
}

/// In a kind that gateways from before there were holders know as well.
pub(crate) fn held_elsewhere() -> WardenFailure {
    WardenFailure {
        kind: FailureKind::Refused,
        errno: None,
        text: "another gateway has this sandbox".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_of(epoch: u64) -> HoldRequest {
        HoldRequest::As(HolderEpoch::new(epoch))
    }

    #[test]
    fn the_highest_epoch_counts_and_what_is_below_is_cut() {
        let table = HolderTable::default();
        let (old, equal, new) = (table.join(), table.join(), table.join());
        assert_eq!(table.hold(&old, as_of(3)), WardenReply::Done);
        assert_eq!(table.hold(&equal, as_of(3)), WardenReply::Done);
        assert!(table.admit(&old).is_ok());
        assert_eq!(table.hold(&new, as_of(u64::MAX)), WardenReply::Done);
        for cut in [&old, &equal] {
            assert!(cut.is_cut.get());
            assert!(table.admit(cut).is_err());
        }
        assert!(!new.is_cut.get());
        let held = WardenReply::HeldBy(HolderEpoch::new(u64::MAX));
        assert_eq!(table.hold(&table.join(), as_of(u64::MAX - 1)), held);
        assert_eq!(table.hold(&table.join(), as_of(0)), held);
    }

    #[test]
    fn who_has_said_nothing_yet_may_still_come_by_a_higher_one() {
        let table = HolderTable::default();
        let (late, new) = (table.join(), table.join());
        table.hold(&new, as_of(6));
        assert!(!late.is_cut.get());
        assert_eq!(table.hold(&late, as_of(7)), WardenReply::Done);
        assert!(new.is_cut.get());
    }

    #[test]
    fn who_never_says_anything_is_obeyed_until_somebody_does() {
        let table = HolderTable::default();
        let silent = table.join();
        assert_eq!(table.admit(&silent).unwrap(), HolderEpoch::UNSHARED);
        let holder = table.join();
        table.hold(&holder, as_of(1));
        assert!(silent.is_cut.get());
        assert_eq!(table.admit(&table.join()), Err(held_elsewhere()));
    }

    #[test]
    fn a_visitor_goes_with_the_holder_of_that_moment() {
        let table = HolderTable::default();
        let (holder, visitor) = (table.join(), table.join());
        table.hold(&holder, as_of(2));
        assert_eq!(table.hold(&visitor, HoldRequest::Visit), WardenReply::Done);
        assert!(table.admit(&visitor).is_ok() && !holder.is_cut.get());
        table.hold(&table.join(), as_of(3));
        assert!(visitor.is_cut.get());
    }
}
