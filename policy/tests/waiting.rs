//! Waiting until a hit is allowed, by a clock that is moved by hand and tasks that are polled by
//! hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate::{Call, Code, Decision, Error, Limiter, ManualClock, Rule};

const SECOND: Duration = Duration::from_secs(1);

type Answer = Result<Decision, Error>;

/// A sleep that is over when it is polled again: each poll of one who is first is an attempt.
async fn until_polled(_: Duration) {
    let mut polled = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut polled, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// One who waits, polled by hand.
struct Task<'r>(Pin<Box<dyn Future<Output = Answer> + Send + 'r>>);

impl<'r> Task<'r> {
    fn new(rule: &'r Rule, call: impl Into<Call<'r>>, cost: u64) -> Task<'r> {
        Task::until(rule, call, cost, None)
    }

    fn until(
        rule: &'r Rule,
        call: impl Into<Call<'r>>,
        cost: u64,
        timeout: Option<Duration>,
    ) -> Task<'r> {
        let call = call.into();
        Task(Box::pin(rule.acquire_with(call, cost, timeout, until_polled)))
    }

    fn poll(&mut self) -> Option<Decision> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer.unwrap()),
            Poll::Pending => None,
        }
    }

    fn waits(&mut self) -> bool {
        self.poll().is_none()
    }

    fn passes(&mut self) -> bool {
        self.poll().is_some_and(|decision| decision.allowed)
    }
}

/// A rule and its clock.
fn rule(policy: Value) -> (Rule, ManualClock) {
    let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
    let policy = json!({"version": 1, "rules": {"default": policy}});
    let options = Limiter::builder().clock(clock.clock());
    let limiter = options.value(&policy).build().unwrap();
    (limiter.rule("default").unwrap(), clock)
}

/// A token a second and ten at once, of which all are gone.
fn drained() -> (Rule, ManualClock) {
    let (rule, clock) = rule(json!({"limits": "60/min burst 10"}));
    assert!(rule.hit("alice", 10).unwrap().allowed);
    (rule, clock)
}

fn left(rule: &Rule, key: &str) -> u64 {
    rule.peek(key, 0).unwrap().remaining.unwrap()
}

#[test]
fn waits_at_least_as_long_as_the_limit_says() {
    let limiter = Limiter::new("20/s burst 1").unwrap();
    let start = Instant::now();
    assert!((0..5).all(|_| limiter.wait("alice", 1, None).unwrap().allowed));
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[test]
fn says_no_at_once_if_it_cannot_be_in_time() {
    // The clock stands still: who waits at all waits forever.
    let (rule, _clock) = drained();
    let late = rule.wait("alice", 5, Some(Duration::from_millis(4_999))).unwrap();
    assert!(!late.allowed);
    assert_eq!(late.retry_after, Some(5 * SECOND));
    assert!(!rule.wait("alice", 1, Some(Duration::ZERO)).unwrap().allowed);
    let never = rule.wait("alice", 11, None).unwrap();
    assert_eq!((never.allowed, never.reason()), (false, Some("cost")));
    let mut late = Task::until(&rule, "alice", 5, Some(Duration::from_millis(4_999)));
    assert!(!late.poll().unwrap().allowed);
}

#[test]
fn passes_in_the_very_moment_of_its_timeout() {
    let (rule, clock) = drained();
    let mut task = Task::until(&rule, "alice", 5, Some(5 * SECOND));
    assert!(task.waits());
    clock.advance(5 * SECOND);
    assert!(task.passes());
}

#[test]
fn one_who_is_not_first_says_no_when_its_time_is_up() {
    let (rule, clock) = drained();
    let (mut first, mut second) =
        (Task::new(&rule, "alice", 5), Task::until(&rule, "alice", 1, Some(2 * SECOND)));
    assert!(first.waits() && second.waits());
    clock.advance(2 * SECOND);
    assert!(!second.poll().unwrap().allowed);
    clock.advance(3 * SECOND);
    assert!(first.passes());
}

#[test]
fn dropping_spends_nothing_and_lets_the_next_go() {
    let (rule, clock) = drained();
    let (mut first, mut second) = (Task::new(&rule, "alice", 5), Task::new(&rule, "alice", 2));
    assert!(first.waits() && second.waits());
    clock.advance(2 * SECOND);
    assert!(second.waits(), "its turn has not come");
    drop(first);
    assert_eq!(left(&rule, "alice"), 2);
    assert!(second.passes());
    assert_eq!(left(&rule, "alice"), 0);
}

#[test]
fn large_cost_is_not_starved_by_small_ones() {
    let (rule, clock) = drained();
    let mut large = Task::new(&rule, "alice", 10);
    assert!(large.waits());
    let mut small = Vec::new();
    for _ in 0..9 {
        clock.advance(SECOND);
        small.push(Task::new(&rule, "alice", 1));
        assert!(small.iter_mut().all(Task::waits) && large.waits());
    }
    clock.advance(SECOND);
    assert!(large.passes());
    for task in &mut small {
        assert!(task.waits(), "nothing is left of what the large one took");
        clock.advance(SECOND);
        assert!(task.passes());
    }
}

#[test]
fn large_cost_is_not_starved_by_hasty_ones() {
    let (rule, clock) = drained();
    let mut large = Task::new(&rule, "alice", 10);
    assert!(large.waits());
    for second in 1..10 {
        let mut hasty = Task::until(&rule, "alice", 1, Some(SECOND));
        let _ = hasty.poll();
        clock.advance(SECOND);
        let answers = [hasty.poll(), Task::until(&rule, "alice", 1, Some(Duration::ZERO)).poll()];
        for no in answers.into_iter().flatten() {
            assert!(!no.allowed);
            assert_eq!((no.reason(), no.remaining), (Some("60/min"), Some(second)));
            assert_eq!(no.retry_after, Some((10 - second as u32) * SECOND));
        }
    }
    clock.advance(SECOND);
    let mut hasty = Task::until(&rule, "alice", 1, Some(Duration::ZERO));
    let no = hasty.poll().unwrap();
    assert!(!no.allowed, "there is enough for the first, who has not looked yet");
    assert_eq!(no.retry_after, Some(Duration::from_millis(1)));
    assert!(large.passes());
}

#[test]
fn large_cost_is_not_starved_by_other_keys_of_a_shared_limit() {
    let shared = json!({"max": 60, "per": "1m", "burst": 10, "scope": []});
    let (rule, clock) = rule(json!({"limits": {"all": shared, "each": "1000/min"}}));
    assert!(rule.hit("zoe", 10).unwrap().allowed);
    let mut large = Task::new(&rule, "alice", 10);
    assert!(large.waits());
    let names: Vec<String> = (0..9).map(|i| format!("bob-{i}")).collect();
    let mut small = Vec::new();
    for name in &names {
        clock.advance(SECOND);
        small.push(Task::new(&rule, name, 1));
        assert!(small.iter_mut().all(Task::waits) && large.waits());
    }
    clock.advance(SECOND);
    assert!(large.passes());
    for task in &mut small {
        assert!(task.waits());
        clock.advance(SECOND);
        assert!(task.passes());
    }
}

#[test]
fn one_who_waits_for_its_own_limit_holds_nobody_up() {
    let shared = json!({"max": 60, "per": "1m", "burst": 10, "scope": []});
    let (rule, clock) = rule(json!({"limits": {"all": shared, "each": "1/h"}}));
    assert!(rule.hit("alice", 1).unwrap().allowed);
    let mut alice = Task::new(&rule, "alice", 1);
    assert!(alice.waits());
    assert!(Task::new(&rule, "bob", 1).passes());
    // All is gone: those who wait for it stand in line, alice does not.
    for name in ["c", "d", "e", "f", "g", "h", "i", "j"] {
        assert!(rule.hit(name, 1).unwrap().allowed);
    }
    let (mut kim, mut lee) = (Task::new(&rule, "kim", 1), Task::new(&rule, "lee", 1));
    assert!(kim.waits() && lee.waits() && alice.waits());
    clock.advance(SECOND);
    assert!(alice.waits() && lee.waits() && kim.passes());
    assert!(lee.waits());
    clock.advance(SECOND);
    assert!(alice.waits() && lee.passes());
    clock.advance(3_600 * SECOND);
    assert!(alice.passes());
}

#[test]
fn waiting_counts_no_denial() {
    let (rule, clock) = rule(json!({
        "limits": "60/min burst 1", "cooldown": "60s", "notify": "once",
        "backoff": {"steps": ["30s"], "quiet": "60s"}, "alert": {"violations": 2, "within": "1h"},
    }));
    assert!(rule.hit("alice", 1).unwrap().allowed);
    let mut task = Task::new(&rule, "alice", 1);
    assert!((0..20).all(|_| task.waits()));
    let late = rule.wait("alice", 1, Some(Duration::ZERO)).unwrap();
    assert_eq!((late.allowed, late.alert, late.notify), (false, false, false));
    assert_eq!(late.retry_after, Some(SECOND), "no cooldown or step begins, so none is told of");
    let metrics = rule.metrics().unwrap();
    assert_eq!((metrics.allowed, metrics.denied, metrics.alerts), (1, vec![], 0));
    assert!(rule.events(None).unwrap().events.is_empty() && !rule.is_limited("bob").unwrap());
    let stats = rule.stats("alice").unwrap().unwrap();
    assert_eq!((stats.violations, stats.cooldown_left), (0, Duration::ZERO));
    clock.advance(SECOND);
    assert!(task.passes());
    assert_eq!(rule.metrics().unwrap().allowed, 2);
    let denied = rule.hit("alice", 1).unwrap();
    assert_eq!((denied.reason(), denied.notify, denied.alert), (Some("60/min"), true, false));
}

#[test]
fn one_limits_own_wait_is_all_that_is_waited_for() {
    let (rule, clock) = rule(json!({"limits": "60/min burst 1", "cooldown": "60s"}));
    assert!(rule.wait("alice", 1, None).unwrap().allowed);
    let mut task = Task::until(&rule, "alice", 1, Some(5 * SECOND));
    assert!(task.waits(), "a second is enough");
    clock.advance(SECOND);
    assert!(task.passes());
}

#[test]
fn cooldown_that_a_hit_began_is_waited_for() {
    let (rule, clock) = rule(json!({"limits": "60/min burst 1", "cooldown": "60s"}));
    assert!(rule.allow("alice").unwrap() && !rule.allow("alice").unwrap());
    let mut task = Task::new(&rule, "alice", 1);
    assert!(task.waits());
    clock.advance(59 * SECOND);
    assert!(task.waits());
    clock.advance(SECOND);
    assert!(task.passes());
}

#[test]
fn who_is_never_denied_stands_in_no_line() {
    let (rule, _clock) = rule(json!({
        "limits": "60/min burst 1", "exempt": [{"role": "admin"}],
        "when": [{"match": {"role": "tester"}, "mode": "shadow"}],
    }));
    assert!(rule.hit("alice", 1).unwrap().allowed);
    let mut first = Task::new(&rule, "alice", 1);
    assert!(first.waits());
    for role in ["admin", "tester"] {
        let attributes = [("role", role)];
        assert!(Task::new(&rule, Call::of("alice").with(&attributes), 1).passes(), "{role}");
    }
    assert!(Task::new(&rule, "alice", 0).passes() && Task::new(&rule, "bob", 1).passes());
    assert!(first.waits());
}

#[test]
fn many_waiters_of_a_key_pass_at_the_rate() {
    const MANY: usize = 8;
    let (rule, clock) = rule(json!({"limits": "60/min burst 1"}));
    assert!(rule.hit("alice", 1).unwrap().allowed);
    let (passed, times) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..MANY {
            let (rule, clock, passed) = (&rule, &clock, passed.clone());
            scope.spawn(move || {
                assert!(rule.wait("alice", 1, None).unwrap().allowed);
                passed.send(clock.now()).unwrap();
            });
        }
        // The clock moves on only when the one whose second it was has passed.
        for second in 1..=MANY as u32 {
            clock.advance(SECOND);
            assert_eq!(times.recv().unwrap(), second * SECOND);
        }
    });
    assert!(times.try_recv().is_err());
    assert_eq!(rule.metrics().unwrap().denied, []);
}

#[test]
fn closing_ends_the_waiting() {
    let limiter = Limiter::new("1/h").unwrap();
    let rule = limiter.rule("default").unwrap();
    assert!(rule.allow("alice").unwrap());
    let asked = Mutex::new(Duration::ZERO);
    let sleep = |wait| {
        *asked.lock().unwrap() = wait;
        until_polled(wait)
    };
    let mut task = Task(Box::pin(rule.acquire_with("alice", 1, None, sleep)));
    assert!(task.waits());
    assert!(*asked.lock().unwrap() <= SECOND, "it looks again before the hour is over");
    limiter.close();
    match task.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => assert_eq!(answer.unwrap_err().code(), Code::Closed),
        Poll::Pending => panic!("it still waits"),
    }
}

/// In a child that was forked with its executor nobody wakes a task that stood in line before.
#[test]
fn a_task_that_is_not_first_looks_again_soon() {
    let rule = Limiter::new("1/h").unwrap().rule("default").unwrap();
    assert!(rule.allow("alice").unwrap());
    let mut first = Task::new(&rule, "alice", 1);
    assert!(first.waits());
    for timeout in [None, Some(7_200 * SECOND)] {
        let asked = Mutex::new(Duration::MAX);
        let sleep = |wait| {
            *asked.lock().unwrap() = wait;
            until_polled(wait)
        };
        let mut second = Task(Box::pin(rule.acquire_with("alice", 1, timeout, sleep)));
        assert!(second.waits());
        assert!(*asked.lock().unwrap() <= 5 * SECOND, "{timeout:?}");
    }
}

#[test]
fn refund_and_reset_are_seen_by_those_who_wait() {
    let (rule, _clock) = drained();
    let mut task = Task::new(&rule, "alice", 4);
    assert!(task.waits());
    rule.refund("alice", 4).unwrap();
    assert!(task.passes());
    let mut task = Task::new(&rule, "alice", 10);
    assert!(task.waits());
    rule.reset("alice").unwrap();
    assert!(task.passes());
}

#[test]
fn rule_with_permits_is_an_error() {
    let (rule, _clock) = rule(json!({"limits": "1 concurrent"}));
    assert_eq!(rule.wait("alice", 1, None).unwrap_err().code(), Code::Operation);
}

/// A task that is polled by whoever wakes it, then and there.
struct Inline {
    task: Mutex<Option<Task<'static>>>,
    wakes: AtomicUsize,
    passed: AtomicUsize,
}

impl Inline {
    fn poll(self: &Arc<Self>) {
        let Some(mut task) = self.task.lock().unwrap().take() else { return };
        let waker = Waker::from(self.clone());
        match task.0.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => {
                self.passed.fetch_add(answer.unwrap().allowed.into(), Ordering::SeqCst);
            }
            Poll::Pending => *self.task.lock().unwrap() = Some(task),
        }
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.poll();
    }
}

#[test]
fn next_may_run_on_the_spot_when_it_is_woken() {
    let (rule, clock) = drained();
    // It lives as long as the test's process, for the task that must own what it needs.
    let rule: &'static Rule = Box::leak(Box::new(rule));
    let mut first = Task::new(rule, "alice", 5);
    assert!(first.waits());
    let task = Mutex::new(Some(Task::new(rule, "alice", 1)));
    let second = Arc::new(Inline { task, wakes: AtomicUsize::new(0), passed: AtomicUsize::new(0) });
    second.poll();
    clock.advance(SECOND);
    // On a thread of its own: what goes wrong here is a deadlock.
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        drop(first);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("waking must hold no lock");
    assert_eq!(second.wakes.load(Ordering::SeqCst), 1);
    assert_eq!(second.passed.load(Ordering::SeqCst), 1);
}

#[cfg(feature = "tokio")]
mod on_tokio {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_tasks_pass_no_faster_than_the_rate() {
        const MANY: u32 = 50;
        let limiter = Limiter::new("500/s burst 1").unwrap();
        let rule = limiter.rule("default").unwrap();
        let start = Instant::now();
        let tasks: Vec<_> = (0..MANY)
            .map(|_| {
                let rule = rule.clone();
                tokio::spawn(async move { rule.acquire("alice", 1, None).await.unwrap().allowed })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap());
        }
        assert!(start.elapsed() >= (MANY - 1) * Duration::from_millis(2));
        assert_eq!(rule.metrics().unwrap().denied, []);
    }

    #[tokio::test]
    async fn timeout_says_no_at_once() {
        let (rule, _clock) = drained();
        assert!(!rule.acquire("alice", 1, Some(SECOND / 2)).await.unwrap().allowed);
    }

    #[tokio::test]
    async fn clock_that_another_task_moves_is_followed() {
        let (rule, clock) = drained();
        let waiting = tokio::spawn(async move { rule.acquire("alice", 3, Some(5 * SECOND)).await });
        for _ in 0..3 {
            tokio::task::yield_now().await;
            clock.advance(SECOND);
        }
        assert!(waiting.await.unwrap().unwrap().allowed);
    }

    #[tokio::test]
    async fn aborted_task_spends_nothing() {
        let (rule, clock) = drained();
        let waiting = tokio::spawn({
            let rule = rule.clone();
            async move { rule.acquire("alice", 3, None).await }
        });
        tokio::task::yield_now().await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        clock.advance(3 * SECOND);
        assert_eq!(left(&rule, "alice"), 3);
        assert!(rule.acquire("alice", 3, Some(Duration::ZERO)).await.unwrap().allowed);
    }
}

/// Polls a future once, by hand.
fn poll<T>(future: &mut Pin<Box<dyn Future<Output = Result<T, Error>> + Send + '_>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer.unwrap()),
        Poll::Pending => None,
    }
}

mod permits {
    use super::*;

    type Waiting<'r> = Pin<Box<dyn Future<Output = Result<tidegate::Permit, Error>> + Send + 'r>>;

    fn waiting<'r>(rule: &'r Rule, key: &'r str, timeout: Option<Duration>) -> Waiting<'r> {
        Box::pin(rule.acquire_permit_with(key, timeout, until_polled))
    }

    #[test]
    fn a_slot_is_had_when_it_is_released_or_its_lease_ends() {
        let (rule, clock) = rule(json!({"limits": "1 concurrent lease 30s"}));
        let held = rule.permit("job").unwrap();
        let mut next = waiting(&rule, "job", None);
        assert!(poll(&mut next).is_none() && poll(&mut next).is_none());
        assert!(held.release());
        let held = poll(&mut next).unwrap();
        assert!(held.is_held() && held.decision().allowed);
        let mut last = waiting(&rule, "job", None);
        assert!(poll(&mut last).is_none());
        clock.advance(30 * SECOND);
        assert!(poll(&mut last).unwrap().is_held());
    }

    #[test]
    fn a_lease_that_ends_too_late_is_no_reason_to_give_up() {
        let (rule, clock) = rule(json!({"limits": "1 concurrent lease 30s"}));
        let held = rule.permit("job").unwrap();
        let (mut first, mut second) =
            (waiting(&rule, "job", Some(5 * SECOND)), waiting(&rule, "job", Some(5 * SECOND)));
        assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
        clock.advance(2 * SECOND);
        assert!(held.release() && poll(&mut second).is_none());
        let held = poll(&mut first).unwrap();
        assert!(held.is_held());
        clock.advance(3 * SECOND);
        let denied = poll(&mut second).unwrap();
        assert!(!denied.is_held() && denied.decision().reason() == Some("1"));
        let at_once = waiting(&rule, "job", Some(Duration::ZERO));
        assert!(!poll(&mut { at_once }).unwrap().decision().allowed);
    }

    #[test]
    fn other_limits_that_take_too_long_are() {
        let limits = json!({"slots": "5 concurrent", "per-hour": "1/h"});
        let (rule, _clock) = rule(json!({ "limits": limits }));
        let _held = rule.permit("job").unwrap();
        let late = poll(&mut waiting(&rule, "job", Some(5 * SECOND))).unwrap();
        assert_eq!((late.is_held(), late.decision().reason()), (false, Some("per-hour")));
    }

    #[test]
    fn dropping_the_future_holds_nothing_and_waiting_counts_no_denial() {
        let limits = json!({"slots": {"max": 1, "algorithm": "concurrent", "cooldown": "1h"}});
        let (rule, _clock) = rule(json!({ "limits": limits }));
        let held = rule.permit("job").unwrap();
        let mut given_up = waiting(&rule, "job", None);
        assert!(poll(&mut given_up).is_none());
        drop(given_up);
        drop(held);
        assert!(rule.permit("job").unwrap().is_held());
    }

    #[test]
    fn slots_over_all_keys_are_had_in_turn() {
        let limits = json!({"all": {"max": 1, "algorithm": "concurrent", "scope": []}});
        let (rule, _clock) = rule(json!({ "limits": limits }));
        let held = rule.permit("a").unwrap();
        let (mut first, mut second) = (waiting(&rule, "b", None), waiting(&rule, "c", None));
        assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
        drop(held);
        assert!(poll(&mut second).is_none());
        let held = poll(&mut first).unwrap();
        assert!(held.is_held() && poll(&mut second).is_none());
        drop(held);
        assert!(poll(&mut second).unwrap().is_held());
    }

    #[test]
    fn a_thread_is_woken_by_a_release() {
        let limiter = Limiter::new("1 concurrent lease 1h").unwrap();
        let held = limiter.permit("job").unwrap();
        let start = Instant::now();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| limiter.wait_permit("job", None).unwrap().is_held());
            std::thread::sleep(Duration::from_millis(50));
            held.release();
            assert!(waits.join().unwrap());
        });
        // One who naps until it looks again does so after a second.
        assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    }

    #[test]
    fn threads_take_turns_at_a_slot() {
        let limiter = Limiter::new("2 concurrent lease 1h").unwrap();
        let out = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let permit = limiter.wait_permit("job", None).unwrap();
                        assert!(out.fetch_add(1, Ordering::SeqCst) < 2);
                        out.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
    }

    #[test]
    fn each_rule_has_its_own_way_to_wait() {
        let (jobs, _clock) = rule(json!({"limits": "1 concurrent"}));
        let (hits, _other) = rule(json!({"limits": "1/s"}));
        let word = |error: Error, word: &str| assert!(error.to_string().contains(word), "{error}");
        word(hits.wait_permit("a", None).unwrap_err(), "`acquire`");
        word(jobs.wait_reservation("a", 1, None).unwrap_err(), "acquire_permit");
        word(jobs.wait("a", 1, None).unwrap_err(), "acquire_permit");
    }
}

mod reservations {
    use super::*;

    #[test]
    fn an_estimate_is_spent_when_it_is_there_and_settled_later() {
        let (rule, clock) = drained();
        let mut waiting: Pin<
            Box<dyn Future<Output = Result<tidegate::Reservation, Error>> + Send>,
        > = Box::pin(rule.acquire_reservation_with("alice", 5, None, until_polled));
        assert!(poll(&mut waiting).is_none());
        clock.advance(4 * SECOND);
        assert!(poll(&mut waiting).is_none() && left(&rule, "alice") == 4);
        clock.advance(SECOND);
        let reserved = poll(&mut waiting).unwrap();
        assert!(reserved.decision().allowed && left(&rule, "alice") == 0);
        reserved.settle(2);
        assert_eq!(left(&rule, "alice"), 3);
        let late = rule.wait_reservation("alice", 5, Some(Duration::from_millis(1_999))).unwrap();
        assert_eq!(late.decision().retry_after, Some(2 * SECOND));
        late.cancel();
        assert_eq!(left(&rule, "alice"), 3);
    }

    #[test]
    fn a_max_of_the_call_holds_while_it_waits() {
        let (rule, _clock) = drained();
        let call = Call::of("bob").max(2);
        assert_eq!(rule.wait_reservation(call, 1, None).unwrap().decision().limit, Some(10));
        let (plain, _clock) = super::rule(json!({"limits": "60/min"}));
        let call = Call::of("bob").max(2);
        assert_eq!(plain.wait_reservation(call, 1, None).unwrap().decision().limit, Some(2));
    }
}

#[test]
fn a_cost_of_nothing_is_slept_for_behind_others_too() {
    let (rule, _clock) = rule(json!({"limits": "10/min window", "cooldown": "60s"}));
    assert!(rule.hit("alice", 10).unwrap().allowed && !rule.hit("alice", 1).unwrap().allowed);
    let mut first = Task::new(&rule, "alice", 5);
    assert!(first.waits());
    let slept = Mutex::new(Vec::new());
    let sleep = |time| {
        slept.lock().unwrap().push(time);
        until_polled(time)
    };
    let mut nothing = Task(Box::pin(rule.acquire_with("alice", 0, None, sleep)));
    assert!(nothing.waits() && nothing.waits());
    drop(nothing);
    let slept = slept.into_inner().unwrap();
    assert!(slept.iter().all(|time| !time.is_zero()), "{slept:?}");
}
