//! A table that another one takes the place of, while others use it or open it.
//!
//! The two words and their order are the engine's own (`retired`). What the kernel and the rules do
//! around them is here in their steps:
//!
//! * the name of a table in its folder (`directory`, and policy's `Folder::table`);
//! * a hit that finds another generation (policy's `RuleState::renewed`);
//! * the one event (policy's `Meter::note_retired`);
//! * opening (policy's `Tables::in_folder`).

use std::sync::Arc;

use super::setting::{both, model};
use crate::ForkLock;
use crate::storage::retired::{is_retired, retire};
use crate::sync::{AtomicU64, Ordering};

/// Which table has the name in the folder.
const NONE: u64 = 0;
const OLD: u64 = 1;
const NEW: u64 = 2;

/// The folder, and the words of the old table.
struct Host {
    name: AtomicU64,
    retired: AtomicU64,
    generation: AtomicU64,
}

impl Host {
    fn new() -> Arc<Host> {
        let word = AtomicU64::new;
        Arc::new(Host { name: word(OLD), retired: word(0), generation: word(0) })
    }

    /// `Folder::table` with `recreate`. The kernel orders what is done to a name.
    fn replace(&self) {
        self.name.store(NONE, Ordering::Release);
        retire(&self.retired, &self.generation);
        self.name.store(NEW, Ordering::Release);
    }

    fn named(&self) -> u64 {
        self.name.load(Ordering::Acquire)
    }
}

/// A process that uses the old table, and its threads.
struct User {
    host: Arc<Host>,
    /// The generation that the process has looked at, `Snapshot::generation`.
    noted: AtomicU64,
    names: ForkLock<()>,
    told: AtomicU64,
    events: AtomicU64,
}

impl User {
    fn new(host: &Arc<Host>, noted: u64) -> Arc<User> {
        let (host, word) = (host.clone(), AtomicU64::new);
        let names = ForkLock::default();
        Arc::new(User { host, noted: word(noted), names, told: word(0), events: word(0) })
    }

    /// `Changes::shared`, and then a look at the name; `None` where it is not this table's any
    /// more.
    fn open(host: &Arc<Host>) -> Option<Arc<User>> {
        host.generation.fetch_add(1, Ordering::Release);
        let noted = host.generation.load(Ordering::Acquire);
        (host.named() == OLD).then(|| User::new(host, noted))
    }

    /// Whether this hit looked, and found the table retired.
    fn hit(&self) -> bool {
        let now = self.host.generation.load(Ordering::Acquire);
        if self.noted.load(Ordering::Acquire) == now {
            return false;
        }
        self.noted.fetch_max(now, Ordering::AcqRel);
        self.look()
    }

    /// `Meter::note_retired`.
    fn look(&self) -> bool {
        let retired = is_retired(&self.host.retired);
        if retired && let Some(_names) = self.names.try_lock() {
            let told = self.told.swap(1, Ordering::Relaxed) != 0;
            self.events.fetch_add(u64::from(!told), Ordering::Relaxed);
        }
        retired
    }

    /// `Rule::events`: how many tell that the table is retired.
    fn events(&self) -> u64 {
        self.look();
        let _names = self.names.lock();
        self.events.load(Ordering::Relaxed)
    }
}

/// Two threads of a process hit while another process replaces the table. At rest the process
/// knows, and has told it once.
#[test]
fn the_one_event_is_told_once() {
    model(|| {
        let host = Host::new();
        let user = User::new(&host, 0);
        let replacing = loom::thread::spawn(move || host.replace());
        let theirs = user.clone();
        let (a, b) = both(move || theirs.hit(), {
            let user = user.clone();
            move || user.hit()
        });
        replacing.join().unwrap();
        let c = user.hit();
        assert!(a || b || c, "a hit noticed");
        assert_eq!(user.events(), 1);
        assert_eq!(user.events(), 1);
    });
}

/// A thread that finds the new table under the name knows at its next hit by the old one.
#[test]
fn a_hit_after_the_new_table_has_the_name_notices() {
    model(|| {
        let host = Host::new();
        let user = User::new(&host, 0);
        let ((), (named, noticed)) = both(
            {
                let host = host.clone();
                move || host.replace()
            },
            move || (user.host.named(), user.hit()),
        );
        assert!(named != NEW || noticed);
    });
}

/// A process opens the table while it is replaced: it finds the name gone, or its next hit notices.
#[test]
fn an_opener_finds_the_name_gone_or_notices() {
    model(|| {
        let host = Host::new();
        let (opened, ()) = both(
            {
                let host = host.clone();
                move || User::open(&host)
            },
            move || host.replace(),
        );
        if let Some(user) = opened {
            assert!(user.hit());
            assert_eq!(user.events(), 1);
        }
    });
}
