//! Threads that do everything to a rule at once. The clock stands still unless said, so that counts
//! are exact.
//!
//! * **I1 bound**: never more is granted than the largest limit that was in force allows.
//! * **I7 all or nothing**: at rest a rule's limits, of whatever scopes, were charged together.
//! * A change acts on the next hit of who made it, whatever the others do.
//! * A cooldown starts once, and refusals don't extend it. An alert is set once in its span. A
//!   sender is told once in an episode.
//! * What is spent of a budget adds up. No more permits are out than there are.
//! * A reload loses nothing that was counted. After `close` every answer is an error.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidegate::{
    AlertAt, BudgetConfig, Call, Code, Limit, LimitPatch, Limiter, LimiterBuilder, ManualClock,
    Match, Notify, RuleConfig, Target,
};

const THREADS: usize = 4;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn rounds(many: usize) -> usize {
    if cfg!(miri) { 2 } else { many }
}

fn manual() -> (ManualClock, LimiterBuilder) {
    let clock = ManualClock::new(SECOND, 20_000 * 24 * HOUR);
    let options = Limiter::builder().clock(clock.clock()).capacity(64);
    (clock, options)
}

fn limiter(rule: RuleConfig) -> (Limiter, ManualClock) {
    let (clock, options) = manual();
    (options.rule(rule).build().unwrap(), clock)
}

/// Runs `work` in threads that start together, and gives what each returns.
fn together<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let (work, start) = (&work, &Barrier::new(threads));
    std::thread::scope(|scope| {
        let spawn = |index| {
            scope.spawn(move || {
                start.wait();
                work(index)
            })
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs `others` again and again in one more thread, for as long as `work` goes on.
fn beside<R: Send>(work: impl Fn(usize) -> R + Sync, others: impl Fn(usize) + Sync) -> Vec<R> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..).take_while(|_| !over.load(SeqCst)).for_each(&others));
        let done = together(THREADS, work);
        over.store(true, SeqCst);
        done
    })
}

fn max_of(limit: &str, max: u64) -> Vec<(String, LimitPatch)> {
    vec![(limit.to_string(), LimitPatch::max(max))]
}

/// Three limits in three tables: of a user, of a tenant, of all.
fn scoped() -> RuleConfig {
    let mut rule = RuleConfig::new("1/h").unwrap();
    rule.key = vec!["tenant".into(), "user".into()];
    rule.limits = vec![
        Limit::window(200, HOUR).named("user"),
        Limit::bucket(400, HOUR).named("tenant").scope(["tenant"]),
        Limit::fixed(500, HOUR).named("all").scope::<&str>([]),
    ];
    rule
}

fn used(limiter: &Limiter, call: Call<'_>) -> Vec<u64> {
    let stats = limiter.stats(call).unwrap();
    stats.map_or(vec![0; 3], |stats| stats.limits.iter().map(|limit| limit.used).collect())
}

#[test]
fn i1_i7_limits_of_all_scopes_are_charged_together_while_their_numbers_change() {
    for round in 0..rounds(20) {
        let (limiter, _) = limiter(scoped());
        let call = Call::of(["acme", "alice"]);
        let key = || Target::key(["acme", "alice"]);
        let by_match = || Match::new([("tenant", "acme")]);
        let staff = || Match::new([("role", "staff")]);
        let granted: u64 = beside(
            |_| (0..100).filter(|_| limiter.hit(call, 1).unwrap().allowed).count() as u64,
            |turn| match turn % 7 {
                0 => drop(limiter.set_override(key(), max_of("user", 100)).unwrap()),
                1 => drop(limiter.set_override(by_match(), max_of("user", 150)).unwrap()),
                2 => drop(limiter.add_exempt(staff()).unwrap()),
                3 => drop(limiter.set_default(max_of("all", 450)).unwrap()),
                4 => drop(limiter.clear_override(key()).unwrap()),
                5 => drop(limiter.remove_exempt(&staff()).unwrap()),
                _ => drop(limiter.clear_override(by_match()).unwrap()),
            },
        )
        .iter()
        .sum();
        let _ = limiter.clear_override(key()).unwrap();
        let _ = limiter.clear_override(by_match()).unwrap();
        assert!(granted <= 200, "I1: {granted} of 200 in round {round}");
        assert_eq!(used(&limiter, call), [granted; 3], "I7 in round {round}");
        let rest = (0..300).filter(|_| limiter.hit(call, 1).unwrap().allowed).count() as u64;
        assert_eq!(granted + rest, 200, "I1, and nothing lost");
        assert_eq!(used(&limiter, call), [200; 3]);
    }
}

#[test]
fn i7_users_of_one_tenant_share_what_is_the_tenants() {
    for _ in 0..rounds(20) {
        let (limiter, _) = limiter(scoped());
        let users = ["alice", "bob", "carol", "dave"];
        let granted = together(THREADS, |index| {
            let key = ["acme", users[index]];
            (0..150).filter(|_| limiter.hit(key, 1).unwrap().allowed).count() as u64
        });
        let all: u64 = granted.iter().sum();
        // Between a look and its take others may be refused who would have passed, so that some
        // may be left; never is there more.
        assert!(all <= 400, "I1");
        for (index, user) in users.iter().enumerate() {
            assert_eq!(used(&limiter, Call::of(["acme", user])), [granted[index], all, all]);
        }
        let more =
            |user| (0..200).filter(|_| limiter.hit(["acme", user], 1).unwrap().allowed).count();
        let rest: usize = users.map(more).iter().sum();
        assert_eq!(all + rest as u64, 400, "I1, and nothing lost");
    }
}

#[test]
fn i7_a_reset_leaves_no_limit_charged_without_the_others() {
    for round in 0..rounds(100) {
        let mut rule = scoped();
        rule.limits.iter_mut().for_each(|limit| *limit = limit.clone().scope(["tenant", "user"]));
        let (limiter, _) = limiter(rule);
        let call = Call::of(["acme", "alice"]);
        beside(
            |_| (0..100).for_each(|_| drop(limiter.hit(call, 1).unwrap())),
            |_| limiter.reset(call).unwrap(),
        );
        let used = used(&limiter, call);
        assert!(used.iter().all(|units| *units == used[0]), "{used:?} in round {round}");
    }
}

#[test]
fn a_change_acts_on_the_next_hit_of_who_made_it() {
    let mut rule = RuleConfig::new("10/h").unwrap();
    // It takes longer to make a snapshot of many exemptions than to change one.
    rule.exempt = (0..200).map(|i| Match::new([("role", format!("role-{i}"))])).collect();
    let (limiter, _) = limiter(rule);
    let names = ["alice", "bob", "carol", "dave"];
    together(THREADS, |index| {
        let (key, own) = (names[index], Match::new([("key", names[index])]));
        let reason = || limiter.peek(key, 0).unwrap().reason().map(str::to_string);
        for turn in 0..rounds(1_000) {
            limiter.add_exempt(own.clone()).unwrap();
            assert_eq!(reason().as_deref(), Some("exempt"), "in turn {turn}");
            assert!(limiter.remove_exempt(&own).unwrap() > 0);
            assert_eq!(reason(), None, "in turn {turn}");
        }
    });
}

/// Who uses a limiter may catch panics.
#[test]
fn limiters_and_rules_may_be_used_across_a_caught_panic() {
    fn is_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe + Send + Sync>() {}
    is_safe::<Limiter>();
    is_safe::<tidegate::Rule>();
    is_safe::<tidegate::Decision>();
}

/// Each thread keeps what it last found a rule to be.
#[test]
fn a_change_acts_on_the_next_hit_of_all_threads() {
    let (limiter, _) = limiter(RuleConfig::new("1/h").unwrap());
    let rule = limiter.rule("default").unwrap();
    // More than have a place to keep it.
    let threads = if cfg!(miri) { 4 } else { 80 };
    let (before, after) = (Barrier::new(threads), Barrier::new(threads));
    let seen = together(threads, |index| {
        let size = |_| rule.hit(["bob", "carol"][index % 2], 1).unwrap().limit;
        let turn = |turn: u64| {
            before.wait();
            if index == turn as usize % threads {
                limiter.set_default(max_of("1/h", turn)).unwrap();
            }
            after.wait();
            // Once anew, and once by what it kept.
            [0, 1].map(size) == [Some(turn); 2]
        };
        (1..=rounds(20) as u64).map(turn).collect::<Vec<bool>>()
    });
    assert!(seen.iter().flatten().all(|&seen| seen), "{seen:?}");
}

/// Calls that an iterator makes while a batch goes through it.
#[test]
fn a_call_within_a_call_goes_by_what_stands_then() {
    let (limiter, _) = limiter(RuleConfig::new("5/h").unwrap());
    let rule = limiter.rule("default").unwrap();
    let calls = ["alice", "alice"].into_iter().inspect(|key| {
        assert_eq!(rule.hit(*key, 1).unwrap().limit, Some(5));
        limiter.set_default(max_of("5/h", 9)).unwrap();
        assert_eq!(rule.hit(*key, 1).unwrap().limit, Some(9));
        limiter.set_default(Vec::new()).unwrap();
    });
    let decisions = rule.hit_many(calls).unwrap();
    assert!(decisions.iter().all(|decision| decision.limit == Some(5)));
    assert_eq!(rule.hit("bob", 1).unwrap().limit, Some(5));
    assert_eq!(rule.stats("alice").unwrap().unwrap().limits[0].used, 5);
}

#[test]
fn a_cooldown_starts_once_and_is_not_extended() {
    let mut rule = RuleConfig::new("1/h window").unwrap();
    (rule.cooldown, rule.notify) = (Some(10 * SECOND), Notify::Once);
    let (limiter, clock) = limiter(rule);
    assert!(limiter.hit("alice", 1).unwrap().allowed);
    for round in 0..rounds(1_000) {
        let decisions: Vec<_> = together(THREADS, |_| {
            (0..5).map(|_| limiter.hit("alice", 1).unwrap()).collect::<Vec<_>>()
        })
        .concat();
        let by = |reason| decisions.iter().filter(|d| d.reason() == Some(reason)).count();
        let all = decisions.len();
        assert_eq!((by("1/h"), by("cooldown")), (1, all - 1), "in round {round}");
        let cooling = decisions.iter().filter(|d| d.reason() == Some("cooldown"));
        assert!(cooling.clone().all(|decision| decision.limit == Some(1)));
        assert_eq!(decisions.iter().filter(|d| d.notify).count(), 1, "told once");
        clock.advance(9 * SECOND);
        together(THREADS, |_| {
            assert_eq!(limiter.hit("alice", 1).unwrap().reason(), Some("cooldown"))
        });
        assert_eq!(limiter.stats("alice").unwrap().unwrap().cooldown_left, SECOND);
        clock.advance(SECOND);
        assert_eq!(limiter.stats("alice").unwrap().unwrap().cooldown_left, Duration::ZERO);
        if clock.now() > 3000 * SECOND {
            limiter.reset("alice").unwrap();
            clock.set(SECOND + clock.now());
            assert!(limiter.hit("alice", 1).unwrap().allowed);
        }
    }
}

#[test]
fn an_alert_is_set_once_in_its_span_and_an_episode_is_told_of_once() {
    let mut rule = RuleConfig::new("1/min").unwrap();
    rule.alert = Some(AlertAt::new(10, HOUR));
    rule.notify = Notify::Once;
    let (limiter, clock) = limiter(rule);
    for round in 0..rounds(300) {
        assert!(limiter.hit("alice", 1).unwrap().allowed, "which ends the episode");
        let decisions: Vec<_> = together(THREADS, |_| {
            (0..10).map(|_| limiter.hit("alice", 1).unwrap()).collect::<Vec<_>>()
        })
        .concat();
        assert_eq!(decisions.iter().filter(|d| d.alert).count(), 1, "in round {round}");
        assert_eq!(decisions.iter().filter(|d| d.notify).count(), 1, "in round {round}");
        let violations = limiter.stats("alice").unwrap().unwrap().violations;
        assert_eq!(violations, decisions.len() as u64, "all of them count");
        clock.advance(HOUR);
    }
}

#[test]
fn what_is_spent_of_a_budget_adds_up() {
    let mut rule = RuleConfig::new("1000/s").unwrap();
    let daily = 3 * 1000 * THREADS as u64;
    rule.budget = Some(BudgetConfig::new(daily));
    let (limiter, clock) = limiter(rule);
    for _ in 0..rounds(10) {
        let over: usize = together(THREADS, |_| {
            (0..1000).filter(|_| limiter.spend("alice", 3).unwrap().over).count()
        })
        .iter()
        .sum();
        assert_eq!(over, 1, "only the last of all spends reaches the budget");
        assert_eq!(limiter.budget("alice").unwrap().spent, daily);
        assert_eq!(limiter.hit("alice", 1).unwrap().reason(), Some("budget"));
        clock.advance(24 * HOUR);
    }
}

#[test]
fn no_more_permits_are_out_than_there_are() {
    let mut rule = RuleConfig::new("1/h").unwrap();
    rule.key = vec!["tenant".into(), "user".into()];
    rule.limits = vec![
        Limit::concurrent(3).named("user"),
        Limit::concurrent(5).named("all").scope::<&str>([]),
        Limit::bucket(1_000_000, HOUR).named("hourly"),
    ];
    let (limiter, _) = limiter(rule);
    let (out, all_out) = ([const { AtomicU64::new(0) }; 2], AtomicU64::new(0));
    let granted: u64 = together(THREADS * 2, |index| {
        let user = index % 2;
        let take = |_: &usize| {
            let permit = limiter.permit(["acme", ["alice", "bob"][user]]).unwrap();
            if !permit.decision().allowed {
                std::thread::yield_now();
                return false;
            }
            assert!(out[user].fetch_add(1, SeqCst) < 3 && all_out.fetch_add(1, SeqCst) < 5);
            std::thread::yield_now();
            all_out.fetch_sub(1, SeqCst);
            out[user].fetch_sub(1, SeqCst);
            assert!(permit.release() && !permit.release());
            true
        };
        (0..rounds(3_000)).filter(take).count() as u64
    })
    .iter()
    .sum();
    for user in ["alice", "bob"] {
        let stats = limiter.stats(["acme", user]).unwrap();
        let used = stats.map_or(vec![0; 3], |s| s.limits.iter().map(|limit| limit.used).collect());
        assert_eq!(used[..2], [0, 0], "all are back");
    }
    let hourly = |user| limiter.peek(["acme", user], 0).unwrap();
    assert!(granted > 0 && ["alice", "bob"].iter().all(|user| hourly(user).allowed));
}

fn policy(max: u64, warn: f64) -> String {
    format!(
        r#"{{"version": 1, "rules": {{"messages": {{"limits":
            {{"few": {{"max": {max}, "per": "1h", "algorithm": "window"}}, "many": "300/h"}},
            "ceiling": 200, "warn_at": {warn}}}}}}}"#
    )
}

#[test]
fn a_reload_loses_nothing_that_was_counted() {
    let path = std::env::temp_dir().join(format!("tidegate-threads-{}.json", std::process::id()));
    for round in 0..rounds(10) {
        std::fs::write(&path, policy(100, 0.5)).unwrap();
        let limiter = manual().1.file(&path).build().unwrap();
        let rule = limiter.rule("messages").unwrap();
        let granted: usize = beside(
            |_| (0..100).filter(|_| rule.hit("alice", 1).unwrap().allowed).count(),
            |turn| {
                std::fs::write(&path, policy([100, 200, 150][turn % 3], 0.8)).unwrap();
                limiter.reload().unwrap();
            },
        )
        .iter()
        .sum();
        let stats = rule.stats("alice").unwrap().unwrap();
        let used: Vec<u64> = stats.limits.iter().map(|limit| limit.used).collect();
        assert!(granted <= 200, "I1: {granted} of 200 in round {round}");
        assert_eq!(used, [granted as u64; 2], "I7 in round {round}");
        std::fs::write(&path, "version: 2").unwrap();
        assert!(limiter.reload().is_err());
        assert!(rule.hit("bob", 1).unwrap().allowed, "all or nothing");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn after_close_every_answer_is_an_error() {
    for _ in 0..rounds(50) {
        let (limiter, _) = limiter(RuleConfig::new("100/h, 1000/d window").unwrap());
        let closed = AtomicBool::new(false);
        together(THREADS, |index| {
            if index == 0 {
                (0..100).for_each(|_| assert!(limiter.allow("alice").unwrap()));
                limiter.close();
                closed.store(true, SeqCst);
                return;
            }
            for turn in 0.. {
                let was_closed = closed.load(SeqCst);
                let changed = match turn % 4 {
                    0 => limiter.hit("bob", 1).map(drop),
                    1 => limiter.set_default(max_of("100/h", 100 + turn % 3)).map(drop),
                    2 => limiter.allow("bob").map(drop),
                    _ => limiter.stats("bob").map(drop),
                };
                match changed {
                    Ok(()) => assert!(!was_closed, "an answer after close"),
                    Err(error) => {
                        assert_eq!(error.code(), Code::Closed);
                        break;
                    }
                }
            }
        });
        assert_eq!(limiter.hit("alice", 1).unwrap_err().code(), Code::Closed);
    }
}
