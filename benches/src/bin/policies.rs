//! What does one hit cost under the policies that people write?
//!
//! Prints a table of BENCHMARKS.md: `cargo run --release -p tidegate-benches --bin policies` (half
//! a minute; `-- --quick` for a smoke run, whose numbers mean nothing).
//!
//! * Each row is a rule of a file in `examples/policies`, with the key and the attributes of a
//!   usual call, and 10,000 other keys known. One thread, one hot key.
//! * Limits as tight as these let a key pass again only when time goes by. So a clock that is moved
//!   by hand goes on by the same step before each hit. The system's clock is read besides, to pay
//!   for it. The last column says how many hits were allowed.
//! * **Unit**: nanoseconds a hit, the median of all rounds, the minimum in brackets. Rows take
//!   turns, and ratios are medians of the rounds' ratios to a rule of one bucket.

use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use tidegate::{Call, Limiter, LimiterBuilder, ManualClock, Rule};
use tidegate_benches::{Row, cell, measure, median};
use tidegate_core::Clock;

const POLICIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/policies/");
/// 15 January 2024, ten o'clock.
const WALL: Duration = Duration::from_secs(1_705_312_800);

/// One rule, and how it is called.
struct Case {
    name: &'static str,
    file: &'static str,
    rule: &'static str,
    key: &'static [&'static str],
    attributes: &'static [(&'static str, &'static str)],
    /// How much time goes by between two hits.
    step: Duration,
}

const fn case(
    name: &'static str,
    (file, rule): (&'static str, &'static str),
    key: &'static [&'static str],
    attributes: &'static [(&'static str, &'static str)],
    step_ms: u64,
) -> Case {
    Case { name, file, rule, key, attributes, step: Duration::from_millis(step_ms) }
}

const CASES: [Case; 9] = [
    case("one bucket, 60 a minute", ("", "default"), &["user:42"], &[], 1_001),
    case(
        "OpenClaw messages: three windows, cooldown, `when`, budget",
        ("openclaw", "messages"),
        &["telegram", "main", "alice"],
        &[],
        18_001,
    ),
    case(
        "OpenClaw dispatch: two windows",
        ("openclaw", "dispatch"),
        &["telegram", "main", "alice"],
        &[],
        18_001,
    ),
    case(
        "AgentCom actions: tiers by action, warning, backoff, alert",
        ("agentcom", "actions"),
        &["agent-7", "ws"],
        &[("action", "message")],
        1_001,
    ),
    case("AgentCom open: one bucket, backoff", ("agentcom", "open"), &["203.0.113.9"], &[], 1_001),
    case(
        "ClawStack publish: a window, `when` by tier",
        ("clawstack", "publish"),
        &["agent-7"],
        &[("tier", "verified")],
        900_001,
    ),
    case("Mercury messages: a window", ("mercury", "messages"), &["slack:C1", "U2"], &[], 6_001),
    case(
        "Jack api-default: a window, exempt roles",
        ("jack", "api-default"),
        &["staff-7"],
        &[("role", "agent"), ("ip", "203.0.113.9")],
        601,
    ),
    case(
        "Jack whatsapp-templates: two windows, two scopes",
        ("jack", "whatsapp-templates"),
        &["+4930123"],
        &[],
        345_601,
    ),
];

/// A rule at work, whose clock goes on by itself before each hit.
struct Contender {
    case: &'static Case,
    rule: Rule,
    clock: ManualClock,
    hits: Cell<u64>,
    allowed: Cell<u64>,
}

impl Contender {
    fn new(case: &'static Case) -> Contender {
        let clock = ManualClock::new(Duration::ZERO, WALL);
        let source = |builder: LimiterBuilder| match case.file {
            "" => builder.limits("60/min"),
            name => builder.file(format!("{POLICIES}{name}.yaml")),
        };
        let limiter =
            source(Limiter::builder().clock(&clock)).build().expect("a policy that loads");
        let rule = limiter.rule(case.rule).expect("a rule of the policy");
        let contender = Contender { case, rule, clock, hits: Cell::new(0), allowed: Cell::new(0) };
        for other in 0..10_000 {
            let name = format!("other-{other}");
            let mut key = case.key.to_vec();
            *key.last_mut().expect("a key has a part") = &name;
            // Keys of one scope share a limit: those that find it spent have no row, and need none.
            let _ = contender.rule.hit(Call::of(&key[..]).with(case.attributes), 1);
        }
        contender
    }

    #[inline]
    fn hit(&self) -> bool {
        self.clock.advance(self.case.step);
        black_box(Clock::System.now());
        let call = Call::of(self.case.key).with(self.case.attributes);
        let allowed = self.rule.hit(call, 1).as_ref().is_ok_and(|decision| decision.allowed);
        self.hits.set(self.hits.get() + 1);
        self.allowed.set(self.allowed.get() + u64::from(allowed));
        allowed
    }
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (rounds, calls) = if quick { (3, 1 << 8) } else { (61, 1 << 13) };
    // For a profiler: `--only NAME CALLS`.
    if let Some(name) = std::env::args().skip_while(|arg| arg != "--only").nth(1) {
        let calls =
            std::env::args().next_back().and_then(|last| last.parse().ok()).unwrap_or(20_000);
        let case = CASES.iter().find(|case| case.name.starts_with(&name)).expect("a row's name");
        let contender = Contender::new(case);
        return (0..calls).for_each(|_| _ = black_box(contender.hit()));
    }
    let all: Vec<Contender> = CASES.iter().map(Contender::new).collect();
    let row = |one: &'static Case, contender: &'static Contender| Row {
        name: one.name,
        against: 0,
        work: Box::new(move |_| contender.hit()),
    };
    let all: &'static [Contender] = all.leak();
    let rows: Vec<Row<'_>> = CASES.iter().zip(all).map(|(case, one)| row(case, one)).collect();
    let times = measure(&rows, rounds, calls);
    println!("| one hit, hot key | ns | ÷ one bucket | allowed |\n|---|--:|--:|--:|");
    for ((one, contender), mine) in CASES.iter().zip(all).zip(&times) {
        let ratio = median(mine.iter().zip(&times[0]).map(|(a, b)| a / b).collect());
        let allowed = 100.0 * contender.allowed.get() as f64 / contender.hits.get() as f64;
        println!("| {} | {} | {ratio:.2} | {allowed:.0} % |", one.name, cell(mine));
    }
}
