//! Cold starts: processes that find no folder, all make it at once, and are killed meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate::Match;

use crate::place::{names, open};
use crate::random::Random;
use crate::shared_words::SharedWords;
use crate::system::{Ended, Pid, fork, kill, wait_within};

const PROCESSES: usize = 4;
const LIMIT: u64 = 30;
const HITS: u64 = 20;

/// The shared words.
mod at {
    pub(super) const GO: usize = 0;
    pub(super) const GRANTED: usize = 1;
    pub(super) const BEGUN: usize = 2;
    pub(super) const ENDED: usize = 3;
    pub(super) const WORDS: usize = 4;
}

fn rules() -> Value {
    json!({ "default": { "limits": format!("{LIMIT}/365d window"), "capacity": 10 } })
}

fn start(folder: &Path, shared: &SharedWords) -> Pid {
    fork(|| {
        shared.await_start(at::GO);
        let limiter = open(folder, rules());
        for _ in 0..HITS {
            shared.add(at::BEGUN, 1);
            let granted = limiter.allow("alice").unwrap();
            shared.add(at::GRANTED, u64::from(granted));
            shared.add(at::ENDED, 1);
        }
        0
    })
}

fn busy_wait(micros: u64) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

/// Starts four processes at once without a folder, kills up to three of them, and checks what they
/// left.
///
/// # Panics
/// If a law is broken, or something is left behind.
pub fn run(base: &Path, rounds: u64, seed: u64) {
    let mut random = Random::new(seed);
    let (mut killed, mut early) = (0, 0);
    for round in 0..rounds {
        let folder = base.join(format!("cold-{round}"));
        let shared = SharedWords::create(&base.join("cold-words"), at::WORDS);
        let pids: Vec<Pid> = (0..PROCESSES).map(|_| start(&folder, &shared)).collect();
        let victims = random.below(PROCESSES as u64) as usize;
        shared.set(at::GO, 1);
        for (number, &pid) in pids.iter().enumerate() {
            if number < victims {
                busy_wait(random.below(1_500));
                kill(pid);
                early += u64::from(!folder.join("default.table").exists());
            }
        }
        for pid in pids {
            match wait_within(pid, Duration::from_secs(20)) {
                Some(Ended::Left(0)) => {}
                Some(Ended::Killed(libc::SIGKILL)) => killed += 1,
                other => panic!("seed {seed}, round {round}: I8: {other:?}"),
            }
        }
        check(&folder, &shared, &format!("seed {seed}, round {round}"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
    println!("{rounds} cold starts, {killed} processes killed, {early} before there was a file");
}

/// Kills processes that change a rule at run time.
///
/// # Panics
/// If a change is torn, or something is left behind.
pub fn change(base: &Path, rounds: u64, seed: u64) {
    let (mut random, folder) = (Random::new(seed), base.join("changes"));
    let limiter = open(&folder, rules());
    for round in 0..rounds {
        let child = fork(|| {
            loop {
                let exempt = |n: u64| Match::new([("user", n.to_string())]);
                limiter.set_exempts((0..20).map(exempt).collect()).unwrap();
                limiter.set_exempts(Vec::new()).unwrap();
            }
        });
        std::thread::sleep(Duration::from_micros(500 + random.below(5_000)));
        kill(child);
        wait_within(child, Duration::from_secs(20));
        let exempts = open(&folder, rules()).exempts().expect("whole changes").len();
        assert!(exempts == 0 || exempts == 20, "seed {seed}, round {round}: {exempts}");
    }
    limiter.add_exempt(Match::new([("role", "admin")])).unwrap();
    let whole =
        ["changes.log", "changes.log.lock", "default.changes", "default.lock", "default.table"];
    assert_eq!(names(&folder), whole, "nothing else is left behind");
    println!("{rounds} processes killed while they changed a rule");
}

fn check(folder: &Path, shared: &SharedWords, at: &str) {
    assert_eq!(names(folder), ["default.table"], "{at}: nothing else is left behind");
    let granted = shared.get(at::GRANTED);
    let maybe = shared.get(at::BEGUN) - shared.get(at::ENDED);
    let limiter = open(folder, rules());
    let rest = (0..=LIMIT).filter(|_| limiter.allow("alice").unwrap()).count() as u64;
    let due = LIMIT - maybe..=LIMIT;
    assert!(due.contains(&(granted + rest)), "{at}: {granted} and {rest} granted, {due:?} due");
}
