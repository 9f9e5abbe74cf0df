//! The OpenClaw policy, read from its file, against a scripted flood over several channels.
//!
//! `make demo`. Ten minutes of chat pass in a moment, on a clock that is moved by hand, so every
//! run shows the same. Each sender writes at its own pace. A table shows what it got and why.
//! Arithmetic that shares nothing with the engine checks each sender's allowed messages against
//! the limits. The exit code is 1 if a single message was over.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use tidegate::{Limiter, ManualClock, Rule};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/policies/openclaw.yaml");
const LENGTH: Duration = Duration::from_secs(600);
/// 15 January 2024, ten o'clock.
const WALL: Duration = Duration::from_secs(1_705_312_800);
const COLUMNS: usize = 60;

/// A sender of messages.
struct Sender {
    channel: &'static str,
    name: &'static str,
    what: &'static str,
    every: Duration,
    /// Messages at each beat.
    at_once: usize,
    /// Cents that a reply costs.
    cents: u64,
    /// The most that its channel allows in 10 s and in a minute; none for the exempt.
    bounds: Option<[(usize, Duration); 3]>,
}

const fn bounds(burst: usize, minute: usize) -> Option<[(usize, Duration); 3]> {
    let seconds = Duration::from_secs;
    Some([(burst, seconds(10)), (minute, seconds(60)), (200, seconds(3600))])
}

const fn sender(
    (channel, name, what): (&'static str, &'static str, &'static str),
    every_ms: u64,
    at_once: usize,
    cents: u64,
    bounds: Option<[(usize, Duration); 3]>,
) -> Sender {
    Sender { channel, name, what, every: Duration::from_millis(every_ms), at_once, cents, bounds }
}

const SENDERS: [Sender; 7] = [
    sender(("telegram", "alice", "talks, a message in 7 s"), 7_000, 1, 0, bounds(5, 20)),
    sender(("whatsapp", "bob", "pastes 8 lines a minute"), 60_000, 8, 0, bounds(5, 20)),
    sender(("telegram", "mallory", "floods, 4 in a second"), 250, 1, 0, bounds(5, 20)),
    sender(("discord", "carol", "a message in a second"), 1_000, 1, 0, bounds(10, 60)),
    sender(("slack", "dave", "a message in 3 s"), 3_000, 1, 0, bounds(5, 20)),
    sender(("signal", "eve", "slow, but 90 cents each"), 30_000, 1, 90, bounds(5, 20)),
    sender(("webchat", "openclaw:operator", "exempt, 10 in a second"), 100, 1, 0, None),
];

/// What came of a sender's messages.
#[derive(Default)]
struct Got {
    sent: u64,
    allowed: Vec<Duration>,
    reasons: BTreeMap<String, u64>,
    told: u64,
    /// For each column of the chart: anything allowed, anything denied.
    columns: Vec<(bool, bool)>,
}

impl Got {
    fn new() -> Got {
        Got { columns: vec![(false, false); COLUMNS], ..Got::default() }
    }
}

fn main() -> ExitCode {
    let clock = ManualClock::new(Duration::ZERO, WALL);
    let options = Limiter::builder().clock(clock.clock());
    let limiter = match options.file(POLICY).build() {
        Ok(limiter) => limiter,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let rule = limiter.rule("messages").expect("the policy has messages");
    let mut all: Vec<Got> = SENDERS.iter().map(|_| Got::new()).collect();
    let step = Duration::from_millis(50);
    while clock.now() < LENGTH {
        for (sender, got) in SENDERS.iter().zip(&mut all) {
            if clock.now().as_millis().is_multiple_of(sender.every.as_millis()) {
                (0..sender.at_once).for_each(|_| write(&rule, sender, clock.now(), got));
            }
        }
        clock.advance(step);
    }
    report(&all)
}

fn write(rule: &Rule, sender: &Sender, now: Duration, got: &mut Got) {
    let key = [sender.channel, "main", sender.name];
    let decision = rule.hit(key, 1).expect("a key of three parts");
    let column = (now.as_millis() * COLUMNS as u128 / LENGTH.as_millis()) as usize;
    got.sent += 1;
    got.told += u64::from(decision.notify);
    if decision.allowed {
        got.allowed.push(now);
        got.columns[column].0 = true;
    } else {
        got.columns[column].1 = true;
    }
    if let Some(reason) = decision.reason() {
        *got.reasons.entry(reason.to_string()).or_default() += 1;
    }
    if sender.cents > 0 && decision.allowed {
        rule.spend(key, sender.cents).expect("the rule has a budget");
    }
}

/// Messages beyond what a limit allows in any span of its length.
fn over(allowed: &[Duration], (max, per): (usize, Duration)) -> usize {
    allowed.windows(max + 1).filter(|span| span[max] - span[0] < per).count()
}

fn report(all: &[Got]) -> ExitCode {
    println!("OpenClaw's policy, ten minutes of chat (one column is ten seconds):");
    println!("  # all allowed   + some denied   - all denied\n");
    let mut beyond = 0;
    for (sender, got) in SENDERS.iter().zip(all) {
        let chart: String = got.columns.iter().map(|column| symbol(*column)).collect();
        println!("{:<9} {:<18} {}", sender.channel, sender.name, sender.what);
        println!("  {chart}");
        let reasons: Vec<String> = got.reasons.iter().map(|(r, n)| format!("{r} {n}")).collect();
        let why =
            if reasons.is_empty() { "nothing denied".to_string() } else { reasons.join(", ") };
        println!("  sent {}, allowed {}: {why}; told {}\n", got.sent, got.allowed.len(), got.told);
        let bounds = sender.bounds.iter().flatten();
        beyond += bounds.map(|bound| over(&got.allowed, *bound)).sum::<usize>();
    }
    let sent: u64 = all.iter().map(|got| got.sent).sum();
    let allowed: usize = all.iter().map(|got| got.allowed.len()).sum();
    let senders = SENDERS.len();
    println!(
        "openclaw: {sent} messages of {senders} senders, {allowed} allowed, \
         {beyond} over the limits"
    );
    if beyond == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn symbol((allowed, denied): (bool, bool)) -> char {
    match (allowed, denied) {
        (true, false) => '#',
        (true, true) => '+',
        (false, true) => '-',
        (false, false) => ' ',
    }
}
