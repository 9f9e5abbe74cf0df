//! How many instructions does one call take?
//!
//! `benches/instructions.sh` runs this under callgrind, once with N calls and once with 2N, and
//! prints the difference for each call. Set-up cancels out, and the count does not depend on other
//! work of the machine. One thread. The loop round the call is counted too, in the row `loop`.
//!
//! What distorts it: under valgrind a millisecond is a few hundred calls, so on the system clock
//! the anchor is renewed far more often than in life. Rows on the manual clock repeat to the
//! instruction; the row `clock` says what the real one adds.

use std::hint::black_box;
use std::time::Duration;

use tidegate::{Limiter, ManualClock, Rule, RuleConfig};
use tidegate_benches::{Quota, distinct, engine};
use tidegate_core::{Clock, Engine, Limit, Limits};

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(case), Some(calls)) = (args.next(), args.next().and_then(|n| n.parse().ok())) else {
        eprintln!("usage: instructions <case> <calls>; see benches/instructions.sh");
        std::process::exit(2);
    };
    run(&case, calls);
}

fn run(case: &str, calls: usize) {
    let usual = || half_spent(1);
    match case {
        "loop" => each(1, calls, |key| key.len()),
        "clock" => each(1, calls, |_| Clock::System.now()),
        "hash" => with(usual(), 1, calls, |engine, key| engine.hash(key)),
        "allow" => with(usual(), 1, calls, Engine::allow),
        "deny" => with(fresh(Quota::SPENT.limits(), 1), 1, calls, Engine::allow),
        "hit" => with(usual(), 1, calls, |engine, key| engine.hit(key, 1)),
        "rule-allow" => with_rule(calls, |rule, key| rule.allow(key)),
        "rule-hit" => with_rule(calls, |rule, key| rule.hit(key, 1)),
        "cooled-hit" => {
            let mut config = RuleConfig::new(DEEP).expect("a limit that fits");
            config.cooldown = Some(Duration::from_secs(1));
            with_rule_of(config, calls, |rule, key| rule.hit(key, 1));
        }
        "windows-hit" => {
            let config =
                RuleConfig::new(["4000/2ms window", "4000/20ms window", "4000/40ms window"]);
            with_rule_of(config.expect("limits that fit"), calls, |rule, key| rule.hit(key, 1));
        }
        "allow-10k" => with(half_spent(10_000), 10_000, calls, Engine::allow),
        "window-deny" => with(fresh(windows(&[(20, 60)]), 1), 1, calls, Engine::allow),
        "windows-deny" => with(three_windows(), 1, calls, Engine::allow),
        "windows" => passing(three_windows(), calls),
        _ => eprintln!("no such case: {case}"),
    }
}

fn windows(each: &[(u64, u64)]) -> Limits {
    let window = |&(max, secs): &(u64, u64)| Limit::window(max, Duration::from_secs(secs));
    Limits::new(&each.iter().map(window).collect::<Vec<_>>()).expect("limits that fit")
}

fn three_windows() -> Engine {
    fresh(windows(&[(5, 10), (20, 60), (200, 3600)]), 1)
}

/// An engine whose clock stands still.
fn fresh(limits: Limits, keys: usize) -> Engine {
    engine(limits, keys, Clock::manual(1 << 40).0)
}

/// An engine whose keys have half of their burst left, a while after they spent the rest.
fn half_spent(keys: usize) -> Engine {
    let (clock, hand) = Clock::manual(1 << 40);
    let engine = engine(Quota::USUAL.limits(), keys, clock);
    for key in distinct(keys) {
        engine.record(key.as_bytes(), u64::from(Quota::USUAL.burst) / 2);
    }
    hand.advance(Duration::from_secs(3));
    engine
}

const DEEP: &str = "1000000000/min";

/// A rule of one bucket.
fn with_rule<R>(calls: usize, call: impl Fn(&Rule, &[u8]) -> R) {
    with_rule_of(RuleConfig::new(DEEP).expect("a limit that fits"), calls, call);
}

/// A rule, one bucket of which is half spent a while ago. The clock moves by 20 µs at each call.
fn with_rule_of<R>(config: RuleConfig, calls: usize, call: impl Fn(&Rule, &[u8]) -> R) {
    let clock = ManualClock::new(Duration::from_secs(1_000), Duration::ZERO);
    let options = Limiter::builder().clock(clock.clock()).capacity(64);
    let limiter = options.rule(config).build().expect("limits that fit");
    let rule = limiter.main().expect("its rule");
    if rule.limit_names().expect("its limits") == [DEEP] {
        rule.record(&distinct(1)[0], 500_000_000).expect("a key that fits");
        clock.advance(Duration::from_secs(3));
    }
    each(1, calls, |key| {
        clock.advance(Duration::from_micros(20));
        call(rule, key)
    });
}

fn each<R>(keys: usize, calls: usize, mut call: impl FnMut(&[u8]) -> R) {
    let keys = distinct(keys);
    for key in keys.iter().cycle().take(calls) {
        black_box(call(black_box(key.as_bytes())));
    }
}

fn with<R>(engine: Engine, keys: usize, calls: usize, call: impl Fn(&Engine, &[u8]) -> R) {
    each(keys, calls, |key| call(&engine, key));
}

/// Hits on one key, far enough apart to be allowed.
fn passing(engine: Engine, calls: usize) {
    let Clock::Manual(hand) = engine.clock() else { return };
    let hand = hand.clone();
    with(engine, 1, calls, |engine, key| {
        hand.advance(Duration::from_secs(18));
        engine.allow(key)
    });
}
