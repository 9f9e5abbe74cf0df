//! I1, I2, I8, I10: eight processes, one of them killed every few milliseconds and started again.
//!
//! `KILL_ROUNDS=10000` kills more often than the 200 of every day; `KILL_SEED` is the seed.
#![cfg(target_os = "linux")]

use std::process::Child;
use std::time::{Duration, Instant};

use tidegate_tests::endure::{self, COUNTED, GIVEN, LIMIT, Layout, WORKERS, own_key};
use tidegate_tests::number_or;
use tidegate_tests::place::{Place, open, worker};
use tidegate_tests::random::Random;
use tidegate_tests::shared_words::SharedWords;

fn start(place: &Place, number: usize) -> Child {
    let (folder, shared) = (place.store(), place.shared_words());
    let number = number.to_string();
    let arguments = ["endure", folder.to_str().unwrap(), shared.to_str().unwrap(), &number];
    worker(env!("CARGO_BIN_EXE_worker"), &arguments).spawn().unwrap()
}

#[test]
fn processes_killed_at_random_wedge_nobody_and_grant_nothing() {
    let rounds = number_or("KILL_ROUNDS", 200) as usize;
    let seed = number_or("KILL_SEED", 1);
    let (place, mut random) = (Place::new(env!("CARGO_TARGET_TMPDIR")), Random::new(seed));
    let layout = Layout { eras: rounds };
    let shared = SharedWords::create(&place.shared_words(), layout.words());
    shared.set(Layout::ERAS, rounds as u64);
    let limiter = open(&place.store(), endure::rules(rounds));
    let given = limiter.rule("given").unwrap();
    let mut workers: Vec<Child> = (0..WORKERS).map(|number| start(&place, number)).collect();
    let mut maybe = vec![0; layout.words()];
    for era in 0..rounds {
        shared.set(Layout::NOW, era as u64);
        std::thread::sleep(Duration::from_micros(1_000 + random.below(19_000)));
        let number = random.below(WORKERS as u64) as usize;
        let ended = workers[number].try_wait().unwrap();
        assert!(ended.is_none(), "worker {number} ended by itself: {ended:?}");
        workers[number].kill().unwrap();
        workers[number].wait().unwrap();
        let intent = shared.get(Layout::intent(number));
        if intent > 0 {
            maybe[intent as usize - 1] += 1;
            shared.set(Layout::intent(number), 0);
        }
        // Its own key's row would be spent for a year.
        given.reset(own_key(number, shared.get(Layout::serial(number))).as_str()).unwrap();
        workers[number] = start(&place, number);
    }
    finish(&shared, workers);
    let killed: u64 = maybe.iter().sum();
    let hits: u64 = (0..WORKERS).map(|worker| shared.get(Layout::done(worker))).sum();
    println!("seed {seed}: {rounds} kills, {killed} of them in a hit; {hits} operations");
    for (index, name) in COUNTED.iter().enumerate() {
        let rule = limiter.rule(name).unwrap();
        for key in 0..layout.keys() {
            let at = layout.grants(index, key);
            let rest = (0..=LIMIT).filter(|_| rule.allow(format!("key-{key}").as_str()).unwrap());
            let granted = shared.get(at) + rest.count() as u64;
            let due = LIMIT - maybe[at].min(LIMIT)..=LIMIT;
            assert!(due.contains(&granted), "{name}, key {key}: {granted} granted, {due:?} due");
        }
    }
    let room = (0..20).filter(|n| given.allow(format!("last-{n}").as_str()).unwrap());
    let kept: Vec<_> = room.collect();
    assert!(kept.len() >= 6, "no row of `given` is lost: {kept:?}");
    for n in kept {
        let more = (0..9).filter(|_| given.allow(format!("last-{n}").as_str()).unwrap()).count();
        assert_eq!(more + 1, GIVEN, "I2: a row that many have had is a new key's");
    }
}

/// I8: a process that was not killed comes to its end.
fn finish(shared: &SharedWords, workers: Vec<Child>) {
    shared.set(Layout::STOP, 1);
    let deadline = Instant::now() + Duration::from_secs(20);
    for (number, mut worker) in workers.into_iter().enumerate() {
        let status = loop {
            if let Some(status) = worker.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = worker.kill();
                panic!("I8: worker {number} hangs");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success(), "worker {number}: {status}");
    }
}
