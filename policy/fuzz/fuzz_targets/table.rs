//! A table file with other bytes in its header and body: refused with a reason, or served within
//! its limits (I1) from then on; never a crash, a hang, or another file in its place.
//!
//! ```text
//! input:  kind 1 │ overlays 1 │ overlays × (place 2 │ length 1 │ bytes) │ operations of one byte
//! ```
//!
//! An overlay is laid over a sound image, one and the same in every run. The header's checksum
//! would stop nearly all of them, so that one bit of the kind repairs it.
#![no_main]

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use rapidhash::v3::{RapidSecrets, rapidhash_v3, rapidhash_v3_seeded};
use tidegate::{Code, Error, Limiter, ManualClock, OnFull, Permit, Policy, Rule};

/// The limits of a table, and what I1 says of them.
struct Subject {
    limits: &'static str,
    /// What may be granted at one moment.
    at_once: u64,
    /// What may be granted in any minute, at most: what a bucket holds and what flows in, two whole
    /// counts for those that forget at once.
    a_minute: u64,
}

const SUBJECTS: [Subject; 8] = [
    Subject { limits: "5/min", at_once: 5, a_minute: 10 },
    Subject { limits: "60/min burst 3", at_once: 3, a_minute: 63 },
    Subject { limits: "5/min window", at_once: 5, a_minute: 5 },
    Subject { limits: "7/min window, 5/30s window", at_once: 5, a_minute: 7 },
    Subject { limits: "5/min counter", at_once: 5, a_minute: 9 },
    Subject { limits: "5/min fixed", at_once: 5, a_minute: 10 },
    Subject { limits: "9/min, 5/min window, 9/h fixed, 9/d counter", at_once: 5, a_minute: 5 },
    Subject { limits: "3 concurrent lease 1min", at_once: 3, a_minute: 3 },
];

/// More keys than rows.
const KEYS: usize = 16;
const CAPACITY: usize = 4;
const MINUTE: Duration = Duration::from_secs(60);
/// Words of the header: see `core/src/storage/header.rs`.
const SEED: usize = 5;
const PROBE: usize = 6;
const MADE_AT: usize = 9;
const SHAPE_BYTES: usize = 10;
const CHECKSUM: usize = 11;
const SHAPE_AT: usize = 1024;

/// Bits of an input's first byte, above the number of its subject.
mod kind {
    pub(super) const MEND: u8 = 8;
    pub(super) const PENALTIES: u8 = 16;
    pub(super) const WHILE_OPEN: u8 = 32;
    pub(super) const ANY_CAPACITY: u8 = 64;
    pub(super) const HOST_CLOCK: u8 = 128;
}

static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("tidegate-fuzz-{}", std::process::id())));

/// Sound tables, by the first byte of an input.
static IMAGES: [OnceLock<Vec<u8>>; 256] = [const { OnceLock::new() }; 256];

fn clock() -> ManualClock {
    ManualClock::new(Duration::from_secs(86_400 * 45), Duration::from_secs(1))
}

fn open(folder: &Path, kind: u8, clock: &ManualClock) -> Result<Limiter, Error> {
    let limits = SUBJECTS[usize::from(kind) % SUBJECTS.len()].limits;
    let more = match kind & kind::PENALTIES {
        0 => "",
        _ => {
            ", cooldown: 1s, alert: { violations: 3, within: 1min }, budget: { daily: 1000 },
               backoff: { steps: [1s, 2s], quiet: 1min, enforce: true }"
        }
    };
    let rule = format!("{{ limits: '{limits}'{more} }}");
    let policy = Policy::from_text(&format!("{{ version: 1, rules: {{ default: {rule} }} }}"))?;
    let options = Limiter::builder()
        .store(format!("file:{}", folder.display()))
        .capacity((kind & kind::ANY_CAPACITY == 0).then_some(CAPACITY))
        .on_full(OnFull::Deny)
        .clock(if kind & kind::HOST_CLOCK == 0 { clock.clock() } else { Default::default() });
    options.policy(policy).build()
}

fn word(image: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(image[8 * at..][..8].try_into().unwrap())
}

fn put(image: &mut [u8], at: usize, word: u64) {
    image[8 * at..][..8].copy_from_slice(&word.to_ne_bytes());
}

/// Makes the header's checksum fit, if its shape has an end.
fn repair(image: &mut [u8]) {
    let shape = word(image, SHAPE_BYTES).min((image.len() - SHAPE_AT) as u64) as usize;
    let text = String::from_utf8_lossy(&image[SHAPE_AT..][..shape]).into_owned();
    let sum = rapidhash_v3(&[&image[..8 * CHECKSUM], text.as_bytes()].concat());
    put(image, CHECKSUM, sum);
}

/// A sound table that was used, the same in every run.
fn image(folder: &Path, kind: u8) -> Vec<u8> {
    let _ = std::fs::remove_dir_all(folder);
    let table = folder.join("default.table");
    drop(open(folder, kind & !kind::ANY_CAPACITY, &clock()).expect("a new table"));
    let mut image = std::fs::read(&table).unwrap();
    let secrets = RapidSecrets::seed(7);
    put(&mut image, SEED, 7);
    put(&mut image, PROBE, rapidhash_v3_seeded(b"tidegate probe, home by fingerprint", &secrets));
    put(&mut image, MADE_AT, 0);
    repair(&mut image);
    std::fs::write(&table, &image).unwrap();
    let limiter = open(folder, kind, &clock()).expect("the same table");
    for key in 0..3 {
        let _ = limiter.hit(name(key).as_str(), 2);
        let _ = limiter.permit(name(key).as_str());
    }
    drop(limiter);
    std::fs::read(&table).unwrap()
}

fn name(key: usize) -> String {
    format!("key-{key}")
}

/// The bytes of an input, one after the other; 0 when there are no more.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }
}

/// Lays the input's bytes over an image.
fn overlay(image: &mut [u8], input: &mut Input<'_>) {
    for _ in 0..input.byte() % 32 {
        let at = usize::from(u16::from_le_bytes([input.byte(), input.byte()])) % image.len();
        let length = usize::from(input.byte() % 65).min(image.len() - at);
        let bytes = input.take(length);
        image[at..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// What each key was granted since its state was last anybody's, and the permits that are out.
struct Tally {
    subject: &'static Subject,
    granted: [Vec<(Duration, u64)>; KEYS],
    permits: Vec<(usize, Permit)>,
    /// Set if the limiter goes by the host's clock.
    started: Option<Instant>,
}

impl Tally {
    fn new(kind: u8) -> Tally {
        Tally {
            subject: &SUBJECTS[usize::from(kind) % SUBJECTS.len()],
            granted: Default::default(),
            permits: Vec::new(),
            started: (kind & kind::HOST_CLOCK != 0).then(Instant::now),
        }
    }

    fn now(&self, clock: &ManualClock) -> Duration {
        self.started.map_or_else(|| clock.now(), |started| started.elapsed())
    }

    /// I1, of every span that ends now.
    fn grant(&mut self, key: usize, now: Duration, cost: u64) {
        let log = &mut self.granted[key];
        log.push((now, cost));
        let since = |from: Duration| -> u64 {
            log.iter().filter(|(at, _)| *at + from > now).map(|(_, cost)| cost).sum()
        };
        let (at_once, a_minute) = (since(Duration::from_nanos(1)), since(MINUTE));
        let Subject { limits, at_once: most, a_minute: in_all } = self.subject;
        assert!(at_once <= *most, "I1: key {key}, {at_once} of {limits} at once: {log:?}");
        assert!(a_minute <= *in_all, "I1: key {key}, {a_minute} of {limits} in a minute: {log:?}");
    }

    /// From here on the state is what somebody made it.
    fn forget(&mut self, key: usize) {
        self.granted[key].clear();
    }

    fn forget_all(&mut self) {
        self.granted = Default::default();
    }
}

/// One operation, whatever it comes to.
fn operate(rule: &Rule, clock: &ManualClock, operation: u8, tally: &mut Tally) {
    let (key, now) = (usize::from(operation) % KEYS, tally.now(clock));
    let text = name(key);
    let text = text.as_str();
    match operation / KEYS as u8 {
        0..=3 if tally.subject.limits.contains("concurrent") => {
            let permit = rule.permit(text).unwrap();
            if permit.is_held() {
                tally.grant(key, now, 1);
                tally.permits.push((key, permit));
            }
        }
        0..=3 => {
            if rule.allow(text).unwrap() {
                tally.grant(key, now, 1);
            }
        }
        4 | 5 => {
            if rule.hit(text, 2).is_ok_and(|decision| decision.allowed) {
                tally.grant(key, now, 2);
            }
        }
        6 => {
            if rule.reserve(text, 1).is_ok_and(|reserved| reserved.decision().allowed) {
                tally.grant(key, now, 1);
            }
        }
        7 => {
            if let Ok(mask) = rule.allow_many(&[text, text]) {
                mask.iter().for_each(|&granted| tally.grant(key, now, granted.into()));
            }
        }
        8 => {
            let _ = rule.record(text, 1);
        }
        9 => {
            let _ = rule.refund(text, 1);
            tally.forget(key);
        }
        10 => {
            let _ = (rule.stats(text), rule.is_limited(text), rule.peek(text, 1));
            let _ = (rule.spend(text, 1), rule.check(text, 1));
        }
        11 => {
            rule.reset(text).unwrap();
            tally.forget(key);
        }
        12 => clock.advance(Duration::from_millis([1, 999, 12_000, 60_000][key % 4])),
        13 => {
            rule.prune().unwrap();
        }
        14 => {
            if let Some((key, permit)) = tally.permits.pop() {
                permit.release();
                tally.forget(key);
            }
        }
        _ => match key {
            0 => {
                rule.reset_all().unwrap();
                tally.forget_all();
            }
            _ => drop((rule.len(), rule.overrides())),
        },
    }
}

/// Everything once, on an old key and a new one, and a whole quota and more: short inputs reach it
/// too.
fn use_up(rule: &Rule, clock: &ManualClock, tally: &mut Tally) {
    let each = (0..=u8::MAX).step_by(KEYS).flat_map(|operation| [operation, operation + 5]);
    let quota = (0..8).flat_map(|_| [0, 1, 5, 6]);
    for operation in quota.clone().chain(each).chain(quota) {
        operate(rule, clock, operation, tally);
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let kind = input.byte();
    let (folder, clock) = (&*FOLDER, clock());
    let table = folder.join("default.table");
    let mut damaged = IMAGES[usize::from(kind)].get_or_init(|| image(folder, kind)).clone();
    std::fs::write(&table, &damaged).unwrap();
    let before = kind & kind::WHILE_OPEN == 0;
    let open_before = if before { None } else { Some(open(folder, kind, &clock).unwrap()) };
    overlay(&mut damaged, &mut input);
    if kind & kind::MEND != 0 {
        repair(&mut damaged);
    }
    let file = std::fs::File::options().write(true).open(&table).unwrap();
    file.write_all_at(&damaged, 0).unwrap();
    let there = file.metadata().unwrap();
    let _ = Limiter::inspect(folder);
    match open_before.map_or_else(|| open(folder, kind, &clock), Ok) {
        Err(error) => {
            let known = matches!(error.code(), Code::Store | Code::Memory | Code::Policy);
            assert!(known && error.to_string().len() < 10_000, "{error}");
        }
        Ok(limiter) => {
            let rule = limiter.rule("default").unwrap();
            let mut tally = Tally::new(kind);
            while !input.0.is_empty() {
                operate(&rule, &clock, input.byte(), &mut tally);
            }
            use_up(&rule, &clock, &mut tally);
            limiter.metrics().unwrap();
        }
    }
    let after = std::fs::metadata(&table).expect("the table is still there");
    assert_eq!((after.ino(), after.len()), (there.ino(), there.len()), "not made anew");
});
