//! Nothing is allocated on `allow`, nor on `hit`, whether allowed or denied.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use serde_json::{Value, json};
use tidegate::{Call, Limiter, Rule};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's duties are handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `calls` calls allocate, after enough of them that names are taken by sample.
fn allocations(calls: usize, mut call: impl FnMut(usize)) -> u64 {
    (0..2_000).for_each(&mut call);
    let before = ALLOCATIONS.get();
    (0..calls).for_each(call);
    ALLOCATIONS.get() - before
}

fn rule(options: Value) -> Rule {
    let policy = json!({ "version": 1, "rules": { "default": options } });
    Limiter::from_value(&policy).unwrap().rule("default").unwrap()
}

const KEYS: [&str; 4] = ["alice", "bob", "carol", "dave"];

#[test]
fn the_counter_counts() {
    assert!(allocations(10, |_| drop(std::hint::black_box(Box::new(7)))) == 10);
}

#[test]
fn allow_allocates_nothing_whether_allowed_or_denied() {
    for limits in ["1000000/s", "1/h", "3/h window, 100/day window", "1000/h counter", "7/h fixed"]
    {
        let rule = rule(json!({ "limits": limits }));
        let count = allocations(10_000, |i| drop(rule.allow(KEYS[i % 4])));
        assert_eq!(count, 0, "{limits}");
    }
}

#[test]
fn hits_allocate_nothing_whatever_the_rule() {
    let rules = [
        json!({ "limits": "1000000/s" }),
        json!({ "limits": {
            "each": "1000000/s",
            "all": { "max": 1_000_000, "per": "1s", "scope": [] }
        } }),
        json!({ "limits": "1000000/s", "cooldown": "1s", "notify": "once", "warn_at": 0.8 }),
        json!({
            "limits": "1000000/s",
            "when": [{
                "match": { "ip": "10.0.0.0/8" },
                "limits": { "1000000/s": { "max": 2_000_000 } }
            }],
            "exempt": [{ "role": ["admin", "system"] }],
            "budget": { "daily": 5 },
            "classify": {
                "from": "action", "to": "tier", "map": { "ping": "light" }, "default": "normal"
            },
        }),
    ];
    for options in rules {
        let rule = rule(options.clone());
        let attributes = [("role", "guest"), ("ip", "10.1.2.3"), ("action", "ping")];
        let call = |i: usize| Call::of(KEYS[i % 4]).with(&attributes);
        let count = allocations(10_000, |i| assert!(rule.hit(call(i), 1).unwrap().allowed));
        assert_eq!(count, 0, "{options}");
        let count =
            allocations(10_000, |i| assert!(!rule.hit(call(i), 3_000_000).unwrap().allowed));
        assert_eq!(count, 0, "denied: {options}");
    }
}
