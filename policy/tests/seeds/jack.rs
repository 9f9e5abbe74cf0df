//! Jack: `examples/policies/jack.yaml` against its author's own words.

use super::*;

const STAFF: [&str; 1] = ["staff_123"];
const ADDRESS: [&str; 1] = ["203.0.113.9"];

#[test]
fn endpoint_table() {
    let table = [
        ("auth-login", ADDRESS, 5, 15 * MINUTE),
        ("auth-refresh", ADDRESS, 10, 5 * MINUTE),
        ("api-default", STAFF, 100, MINUTE),
        ("api-messages", STAFF, 60, MINUTE),
        ("api-search", STAFF, 30, MINUTE),
        ("api-bulk", STAFF, 10, HOUR),
    ];
    for (category, key, max, window) in table {
        let (limiter, clock) = open("jack");
        let endpoint = rule(&limiter, category);
        assert_eq!(grants(&endpoint, key, 200), max, "{category}");
        assert_eq!(hit(&endpoint, key).retry_after, Some(window), "{category}");
        clock.advance(window - MILLI);
        assert_eq!(grants(&endpoint, key, 200), 0, "{category}");
        clock.advance(MILLI);
        assert_eq!(grants(&endpoint, key, 200), max, "{category}");
    }
}

#[test]
fn hits_within_one_second_all_count() {
    let (limiter, clock) = open("jack");
    let login = rule(&limiter, "auth-login");
    for _ in 0..5 {
        assert_allowed(&hit(&login, ADDRESS));
        clock.advance(MILLI);
    }
    assert_denied(&hit(&login, ADDRESS), "logins", 15 * MINUTE - 5 * MILLI);
}

#[test]
fn categories_and_keys_are_apart() {
    let (limiter, _clock) = open("jack");
    let (messages, search) = (rule(&limiter, "api-messages"), rule(&limiter, "api-search"));
    assert_eq!(grants(&messages, STAFF, 200), 60);
    assert_eq!(grants(&search, STAFF, 200), 30);
    assert_eq!(grants(&messages, ["staff_124"], 200), 60);
    assert_eq!(grants(&messages, ADDRESS, 200), 60, "nobody logged in: the address");
}

#[test]
fn an_unknown_category_is_api_default() {
    let (limiter, _clock) = open("jack");
    assert_eq!(grants(&rule(&limiter, "api-export"), STAFF, 200), 100);
    assert_eq!(grants(&rule(&limiter, "api-default"), STAFF, 200), 0, "they share it");
}

#[test]
fn response_headers_are_those_of_its_examples() {
    let (limiter, clock) = open("jack");
    let api = rule(&limiter, "api-default");
    assert_eq!(grants(&api, STAFF, 4), 4);
    let ok = hit(&api, STAFF);
    assert_eq!(header(&ok, "X-RateLimit-Limit").as_deref(), Some("100"));
    assert_eq!(header(&ok, "X-RateLimit-Remaining").as_deref(), Some("95"));
    assert_eq!(header(&ok, "X-RateLimit-Reset").as_deref(), Some("1705312860"));
    assert_eq!(header(&ok, "Retry-After"), None);

    assert_eq!(grants(&api, STAFF, 95), 95);
    clock.advance(15 * SECOND);
    let too_many = hit(&api, STAFF);
    assert_eq!(header(&too_many, "X-RateLimit-Limit").as_deref(), Some("100"));
    assert_eq!(header(&too_many, "X-RateLimit-Remaining").as_deref(), Some("0"));
    assert_eq!(header(&too_many, "X-RateLimit-Reset").as_deref(), Some("1705312860"));
    assert_eq!(header(&too_many, "Retry-After").as_deref(), Some("45"));
}

#[test]
fn header_names_can_be_changed() {
    let limiter = changed("jack", &[("limit: X-RateLimit-Limit", "limit: X-Jack-Limit")]).unwrap();
    let ok = hit(&rule(&limiter, "api-default"), STAFF);
    assert_eq!(header(&ok, "X-Jack-Limit").as_deref(), Some("100"));
    assert_eq!(header(&ok, "X-RateLimit-Limit"), None);
    assert_eq!(header(&ok, "X-RateLimit-Remaining").as_deref(), Some("99"));
}

#[test]
fn admin_and_system_bypass_every_endpoint() {
    let (limiter, _clock) = open("jack");
    let staff = ["api-default", "api-messages", "api-search", "api-bulk"].map(|name| (name, STAFF));
    let auth = ["auth-login", "auth-refresh", "webhook-inbound"].map(|name| (name, ADDRESS));
    for (category, key) in staff.into_iter().chain(auth) {
        let endpoint = rule(&limiter, category);
        for role in ["admin", "system"] {
            for _ in 0..150 {
                assert_exempt(&hit_with(&endpoint, key, ("role", role)));
            }
        }
        assert_allowed(&hit_with(&endpoint, key, ("role", "staff")));
    }
    assert_eq!(grants_with(&rule(&limiter, "api-bulk"), ["x"], ("role", "manager"), 50), 10);
}

#[test]
fn webhooks_of_known_sources_get_ten_times_as_much() {
    let sources = [
        ("203.0.113.9", 1_000),
        ("157.239.255.255", 1_000),
        ("157.241.0.0", 1_000),
        ("157.240.0.0", 10_000),
        ("157.240.255.255", 10_000),
        ("54.1.2.3", 10_000),
        ("55.0.0.0", 1_000),
        ("::ffff:157.240.1.2", 10_000),
        ("2001:db8::1", 1_000),
    ];
    let (limiter, _clock) = open("jack");
    let webhooks = rule(&limiter, "webhook-inbound");
    for (address, max) in sources {
        assert_eq!(grants(&webhooks, [address], 12_000), max, "{address}");
    }
}

#[test]
fn webhooks_go_on_after_a_minute() {
    let (limiter, clock) = open("jack");
    let webhooks = rule(&limiter, "webhook-inbound");
    assert_eq!(grants(&webhooks, ADDRESS, 2_000), 1_000);
    clock.advance(2 * MINUTE);
    assert_eq!(grants(&webhooks, ADDRESS, 2_000), 1_000);
}

#[test]
fn a_phone_gets_250_templates_a_day() {
    let (limiter, clock) = open("jack");
    let templates = rule(&limiter, "whatsapp-templates");
    let phone = ["+15550100"];
    for _ in 0..250 {
        assert_allowed(&hit(&templates, phone));
        clock.advance(20 * SECOND);
    }
    // What is older than an hour still counts.
    templates.prune().unwrap();
    assert_denied(&hit(&templates, phone), "per-phone", DAY - 5000 * SECOND);
    assert_allowed(&hit(&templates, ["+15550101"]));
    clock.advance(DAY - 5000 * SECOND);
    assert_eq!(grants(&templates, phone, 5), 1);
}

#[test]
fn all_phones_together_get_80_messages_a_second() {
    let (limiter, clock) = open("jack");
    let templates = rule(&limiter, "whatsapp-templates");
    let phones: Vec<_> = (0..81).map(|n| format!("+1555{n:04}")).collect();
    for phone in &phones[..80] {
        assert_allowed(&hit(&templates, [phone]));
    }
    let denied = hit(&templates, [&phones[80]]);
    assert_denied(&denied, "per-second", SECOND);
    assert_eq!((denied.limit, denied.remaining), (Some(80), Some(0)));
    clock.advance(SECOND);
    assert_eq!(grants(&templates, [&phones[80]], 100), 80);
    assert_eq!(used(&templates, [&phones[80]], "per-phone"), 80, "a denial took nothing");
}

#[test]
fn business_tiers_of_whatsapp() {
    let (limiter, _clock) = open("jack");
    let business = rule(&limiter, "whatsapp-business");
    for (tier, max) in [("tier1", 1_000), ("tier2", 10_000), ("tier3", 100_000)] {
        let allowed = grants_with(&business, [tier], ("tier", tier), max + 100);
        assert_eq!(allowed, max, "{tier}");
    }
    assert_eq!(grants(&business, ["of no tier"], 2_000), 1_000);
}

#[test]
fn a_twilio_number_sends_one_message_a_second() {
    let (limiter, clock) = open("jack");
    let twilio = rule(&limiter, "twilio");
    let first = twilio.permit(["+15550100"]).unwrap();
    assert!(first.is_held());
    let second = twilio.permit(["+15550100"]).unwrap();
    assert_denied(second.decision(), "per-number", SECOND);
    assert!(twilio.permit(["+15550101"]).unwrap().is_held());
    assert!(first.release());
    assert!(!twilio.permit(["+15550100"]).unwrap().is_held(), "its second isn't over");
    clock.advance(SECOND);
    assert!(twilio.permit(["+15550100"]).unwrap().is_held());
}

#[test]
fn twilio_has_a_hundred_calls_at_once() {
    let (limiter, clock) = open("jack");
    let twilio = rule(&limiter, "twilio");
    let numbers: Vec<_> = (0..102).map(|n| format!("+1555{n:04}")).collect();
    let mut calls: Vec<_> = Vec::new();
    for number in &numbers[..100] {
        calls.push(twilio.permit([number.as_str()]).unwrap());
    }
    assert!(calls.iter().all(|call| call.is_held()));
    let one_more = || twilio.permit([numbers[100].as_str()]).unwrap();
    assert_denied(one_more().decision(), "calls", 30 * SECOND);
    assert!(calls.pop().unwrap().release());
    let held = one_more();
    assert!(held.is_held());

    // Calls that never end are free again after their lease.
    clock.advance(30 * SECOND);
    assert!(twilio.permit([numbers[101].as_str()]).unwrap().is_held());
}

#[test]
fn hits_on_a_rule_with_permits_are_errors_that_name_permit() {
    let (limiter, _clock) = open("jack");
    let error = rule(&limiter, "twilio").hit(["+15550100"], 1).unwrap_err();
    assert!(error.to_string().contains("permit"), "{error}");
}
