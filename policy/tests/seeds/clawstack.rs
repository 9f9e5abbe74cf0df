//! ClawStack: `examples/policies/clawstack.yaml` against its author's own words.

use super::*;

const PUBLISHER: [&str; 1] = ["agent-abc12345-6789-0123-4567-890abcdef123"];

#[test]
fn tier_matrix() {
    let matrix = [("new", 1, 2 * HOUR), ("established", 1, HOUR), ("verified", 4, HOUR)];
    for (tier, max, window) in matrix {
        let (limiter, clock) = open("clawstack");
        let publish = rule(&limiter, "publish");
        assert_eq!(grants_with(&publish, PUBLISHER, ("tier", tier), 10), max, "{tier}");
        let denied = hit_with(&publish, PUBLISHER, ("tier", tier));
        assert_denied(&denied, "publish", window);
        clock.advance(window - MILLI);
        assert!(!hit_with(&publish, PUBLISHER, ("tier", tier)).allowed, "{tier}");
        clock.advance(MILLI);
        assert_eq!(grants_with(&publish, PUBLISHER, ("tier", tier), 10), max, "{tier}");
    }
}

#[test]
fn a_suspended_agent_never_publishes() {
    let (limiter, clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    for _ in 0..3 {
        let denied = hit_with(&publish, PUBLISHER, ("tier", "suspended"));
        assert_never(&denied, "publish");
        assert_eq!((denied.limit, denied.remaining), (Some(0), Some(0)));
        assert_eq!(header(&denied, "Retry-After"), None);
        assert_eq!(denied.attach().unwrap().get("spam_fee_option"), None);
        clock.advance(365 * DAY);
    }
}

#[test]
fn an_unknown_tier_is_new() {
    let (limiter, _clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    assert_allowed(&hit(&publish, PUBLISHER));
    assert_denied(&hit(&publish, PUBLISHER), "publish", 2 * HOUR);
    assert_denied(&hit_with(&publish, PUBLISHER, ("tier", "legendary")), "publish", 2 * HOUR);
}

#[test]
fn the_window_slides() {
    let (limiter, clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    let verified = ("tier", "verified");
    for _ in 0..4 {
        assert_allowed(&hit_with(&publish, PUBLISHER, verified));
        clock.advance(10 * MINUTE);
    }
    assert_denied(&hit_with(&publish, PUBLISHER, verified), "publish", 20 * MINUTE);
    clock.advance(20 * MINUTE);
    assert_allowed(&hit_with(&publish, PUBLISHER, verified));
    assert_denied(&hit_with(&publish, PUBLISHER, verified), "publish", 10 * MINUTE);
}

#[test]
fn a_promotion_counts_from_the_next_request() {
    let (limiter, _clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    assert_eq!(grants_with(&publish, PUBLISHER, ("tier", "new"), 3), 1);
    assert_eq!(grants_with(&publish, PUBLISHER, ("tier", "verified"), 10), 3);
    assert_never(&hit_with(&publish, PUBLISHER, ("tier", "suspended")), "publish");
}

#[test]
fn every_response_has_its_headers() {
    let (limiter, clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    let shown = |decision: &Decision| {
        ["Limit", "Remaining", "Reset"]
            .map(|n| header(decision, &format!("X-RateLimit-{n}")).unwrap())
    };
    let reset = (WALL + 3600).to_string();
    let first = hit_with(&publish, PUBLISHER, ("tier", "verified"));
    assert_eq!(shown(&first), ["4", "3", &reset]);
    assert_eq!(header(&first, "Retry-After"), None);

    assert_eq!(grants_with(&publish, PUBLISHER, ("tier", "verified"), 3), 3);
    clock.advance(600 * SECOND);
    let denied = hit_with(&publish, PUBLISHER, ("tier", "verified"));
    assert_eq!(shown(&denied), ["4", "0", &reset]);
    assert_eq!(header(&denied, "Retry-After").as_deref(), Some("3000"));
}

/// What the publish handler sends with a 429.
fn body(denied: &Decision) -> Value {
    let mut body = denied.attach().unwrap().clone();
    body["retry_after"] = json!(denied.retry_after.unwrap().as_secs());
    body
}

#[test]
fn a_429_offers_the_fee_of_the_tier() {
    for (tier, fee) in [("established", "0.10"), ("verified", "0.25")] {
        let (limiter, _clock) = open("clawstack");
        let publish = rule(&limiter, "publish");
        while hit_with(&publish, PUBLISHER, ("tier", tier)).allowed {}
        let denied = hit_with(&publish, PUBLISHER, ("tier", tier));
        let expected = json!({
            "error": "rate_limit_exceeded",
            "message": "Publishing limit reached. Pay anti-spam fee or wait.",
            "retry_after": 3600,
            "spam_fee_option": { "fee_usdc": fee, "payment_options": [] }
        });
        assert_eq!(body(&denied), expected);
        assert_eq!(header(&denied, "Retry-After").as_deref(), Some("3600"));
    }
}

#[test]
fn a_new_agent_is_offered_no_fee() {
    let (limiter, _clock) = open("clawstack");
    let publish = rule(&limiter, "publish");
    assert_allowed(&hit_with(&publish, PUBLISHER, ("tier", "new")));
    let denied = hit_with(&publish, PUBLISHER, ("tier", "new"));
    assert_eq!(body(&denied)["error"], "rate_limit_exceeded");
    assert_eq!(body(&denied)["retry_after"], 7200);
    assert_eq!(body(&denied).get("spam_fee_option"), None);
}
