//! Who may work now.
//!
//! One person has so many seats; whoever of theirs finds none waits, in the order they came. Only who
//! has such a seat stands in line for one of all seats, so that one person stands there so many times
//! at most, whatever number of chats, groups and topics they write in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use hermetic_types::{Platform, UserId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::kept::Kept;
use crate::lanes::Told;

/// Turns of one person that may wait for a seat.
const MOST_WAITING: usize = 128;

#[derive(Debug)]
pub(crate) struct Seats {
    all: Arc<Semaphore>,
    /// How many one person has.
    each: usize,
    people: Mutex<HashMap<Person, Bench>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Person {
    platform: Platform,
    user: UserId,
}

/// One person's seats. It exists while somebody sits or waits.
#[derive(Debug)]
struct Bench {
    seats: Arc<Semaphore>,
    /// Those who sit and those who wait.
    present: usize,
    told_full: bool,
}

/// A place in the line.
pub(crate) struct Ticket(Waiting);

enum Waiting {
    Over(Seat),
    Goes(BoxFuture<'static, Seat>),
}

/// Given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    held: Vec<OwnedSemaphorePermit>,
    seats: Arc<Seats>,
    person: Person,
}

/// What one person has going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) at_work: usize,
    pub(crate) waiting: usize,
}

impl Seats {
    pub(crate) fn new(all: Option<usize>, each: usize) -> Arc<Self> {
        let bounded = |count: usize| count.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            all: Arc::new(Semaphore::new(bounded(all.unwrap_or(usize::MAX)))),
            each: bounded(each),
            people: Mutex::default(),
        })
    }

    /// Joins the line of whoever said this; refused if too many of theirs wait.
    pub(crate) fn line_up(self: &Arc<Self>, message: &Kept) -> Result<Ticket, Told> {
        let said = message.said();
        self.line_up_as(Person {
            platform: said.platform,
            user: said.sender.id.clone(),
        })
    }

    fn line_up_as(self: &Arc<Self>, person: Person) -> Result<Ticket, Told> {
        let bench = self.enter(&person)?;
        let mut seat = Seat {
            held: Vec::with_capacity(2),
            seats: Arc::clone(self),
            person,
        };
        let all = Arc::clone(&self.all);
        let mut taking = async move {
            for line in [bench, all] {
                // They are never closed.
                seat.held.extend(line.acquire_owned().await.ok());
            }
            seat
        }
        .boxed();
        // A place is taken by the first look, so that the order is that of the calls, not that in
        // which tasks happen to run.
        Ok(Ticket(match (&mut taking).now_or_never() {
            Some(seat) => Waiting::Over(seat),
            None => Waiting::Goes(taking),
        }))
    }

    /// What whoever said this has going on, in all their conversations.
    pub(crate) fn load(&self, message: &Kept) -> Load {
        let said = message.said();
        let person = Person {
            platform: said.platform,
            user: said.sender.id.clone(),
        };
        let people = self.lock();
        people.get(&person).map_or_else(Load::default, |bench| {
            let at_work = self.each - bench.seats.available_permits();
            Load {
                at_work,
                waiting: bench.present.saturating_sub(at_work),
            }
        })
    }

    pub(crate) fn each(&self) -> usize {
        self.each
    }

    fn enter(&self, person: &Person) -> Result<Arc<Semaphore>, Told> {
        let mut people = self.lock();
        let bench = people.entry(person.clone()).or_insert_with(|| Bench {
            seats: Arc::new(Semaphore::new(self.each)),
            present: 0,
            told_full: false,
        });
        if bench.present >= self.each.saturating_add(MOST_WAITING) {
            return Err(match std::mem::replace(&mut bench.told_full, true) {
                true => Told::Before,
                false => Told::Now,
            });
        }
        bench.present += 1;
        Ok(Arc::clone(&bench.seats))
    }

    fn leave(&self, person: &Person) {
        let mut people = self.lock();
        let Entry::Occupied(mut bench) = people.entry(person.clone()) else {
            return;
        };
        bench.get_mut().present -= 1;
        bench.get_mut().told_full = false;
        if bench.get().present == 0 {
            bench.remove();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Person, Bench>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    pub(crate) async fn seat(self) -> Seat {
        match self.0 {
            Waiting::Over(seat) => seat,
            Waiting::Goes(taking) => taking.await,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Before the bench may go: who comes next would get a new one next to the old.
        self.held.clear();
        self.seats.leave(&self.person);
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str) -> Person {
        Person {
            platform: Platform::Telegram,
            user: UserId::new(name).unwrap(),
        }
    }

    fn sits(ticket: &Ticket) -> bool {
        matches!(ticket.0, Waiting::Over(_))
    }

    fn line_up(seats: &Arc<Seats>, name: &str) -> Ticket {
        seats.line_up_as(person(name)).unwrap()
    }

    #[test]
    fn one_person_has_so_many_and_others_theirs() {
        let seats = Seats::new(None, 2);
        let ann: Vec<_> = (0..200)
            .map_while(|_| seats.line_up_as(person("ann")).ok())
            .collect();
        assert_eq!(ann.iter().filter(|ticket| sits(ticket)).count(), 2);
        assert_eq!(ann.len(), 2 + MOST_WAITING);
        assert!(sits(&line_up(&seats, "bob")));
    }

    #[tokio::test]
    async fn a_line_keeps_its_order_and_who_leaves_it_gives_way() {
        let seats = Seats::new(None, 1);
        let first = line_up(&seats, "ann");
        let (second, third) = (line_up(&seats, "ann"), line_up(&seats, "ann"));
        let last = line_up(&seats, "ann");
        drop(third);
        drop(first);
        let second = second.seat().await;
        let mut last = Box::pin(last.seat());
        assert!((&mut last).now_or_never().is_none());
        drop(second);
        drop(last.await);
        assert_eq!(seats.lock().len(), 0, "nobody is kept in mind for ever");
    }

    #[tokio::test]
    async fn where_all_are_few_a_crowd_of_one_person_is_passed_by_the_next() {
        let seats = Seats::new(Some(1), 2);
        let mut ann: Vec<_> = (0..50).map(|_| line_up(&seats, "ann")).collect();
        let bob = line_up(&seats, "bob");
        // One sits, one stands before Bob; the others do not stand there at all.
        drop(ann.remove(0));
        drop(ann.remove(0));
        assert!(bob.seat().now_or_never().is_some());
    }

    #[test]
    fn whoever_sends_on_and_on_is_told_once() {
        let seats = Seats::new(None, 1);
        let all: Vec<_> = (0..=MOST_WAITING).map(|_| line_up(&seats, "ann")).collect();
        let told: Vec<_> = (0..3)
            .map(|_| seats.line_up_as(person("ann")).err())
            .collect();
        assert_eq!(
            told,
            [Some(Told::Now), Some(Told::Before), Some(Told::Before)]
        );
        drop(all);
        assert!(sits(&line_up(&seats, "ann")));
    }
}
