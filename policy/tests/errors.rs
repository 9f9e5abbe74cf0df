//! Every message that a mistake can lead to, held against `errors.txt`: read them there.
//!
//! `UPDATE=1 cargo test -p tidegate --test errors` writes the file anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::bindings::{limit_patches, parse_period};
use tidegate::{
    Call, Code, Counts, Error, Limit, LimitPatch, Limiter, ManualClock, Match, Policy, RuleConfig,
    Target, ip_key,
};

/// What stands in the place of a message that is missing.
const ACCEPTED: &str = "!! this was accepted";

/// The messages so far, under heads.
#[derive(Default)]
struct Book(String);

impl Book {
    fn head(&mut self, text: &str) {
        let _ = write!(self.0, "\n== {text}\n\n");
    }

    /// Takes note of what is said of something that must be refused.
    fn refused<T>(&mut self, what: &str, result: Result<T, Error>) {
        let Err(error) = result else {
            let _ = writeln!(self.0, "{what}\n    {ACCEPTED}");
            return;
        };
        let text = error.to_string();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{what}: {text:?}");
        assert!(text.len() < 2000, "{what}: {} bytes", text.len());
        let text = text.replace('\n', "\n    ").replace(&folder().display().to_string(), "DIR");
        let _ = writeln!(self.0, "{what}\n    {}: {text}", error.code().as_str());
    }
}

/// A folder of this process alone.
fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tidegate-errors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// A policy of one rule called `r`.
fn of_rule(rule: Value) -> Value {
    json!({"version": 1, "rules": {"r": rule}})
}

/// A rule with one more field.
fn with(field: &str, value: Value) -> Value {
    let mut rule = json!({"limits": {"a": {"max": 5, "per": "1m"}}});
    rule[field] = value;
    of_rule(rule)
}

fn limit_texts(book: &mut Book) {
    book.head("limits as text");
    let long = "9".repeat(5000);
    for text in [
        "",
        "20",
        "20/",
        "/min",
        "20/mni",
        "20/10",
        "20/0s",
        "20/367d",
        "20/99999999999999999999d",
        "-1/s",
        "1.5/s",
        "many/s",
        "99999999999999999999/s",
        "2000000000/s",
        "20/min burst",
        "20/min burst x",
        "20/min burst 0",
        "20/min burst 5 burst 6",
        "20/min window burst 5",
        "20/min windw",
        "20/min window fixed",
        "20/min concurrent",
        "20/min lease 5s",
        "5000/min window",
        "5 concurrent lease",
        "5 concurrent lease x",
        "5 concurrent 5s",
        "5000 concurrent",
        "x concurrent",
        "5/s, 20/mni, x",
        "5/s, 5/s",
        "5/s,",
        "20/min\u{7}",
        "20/min \u{1b}[31mred",
        "1/366d burst 1000000000",
    ] {
        book.refused(&format!("{text:?}"), Limiter::new(text));
    }
    book.refused("5000 digits", Limiter::new(long.as_str()));
    book.refused("5000 digits a second", Limiter::new(format!("{long}/s").as_str()));
    book.refused("a limit alone: \"20/mni\"", "20/mni".parse::<Limit>());
    book.refused("a period alone: \"10\"", parse_period("10"));
    book.refused("no limits", Limiter::new(Vec::<Limit>::new()));
    book.refused("half a millisecond", Limiter::new(Limit::bucket(5, Duration::from_micros(500))));
}

fn texts(book: &mut Book) {
    book.head("policy texts");
    let deep = "[".repeat(1000);
    for text in [
        "",
        "hello",
        "[]",
        "{",
        "{\"version\": 1,",
        "{\"version\": 1, \"version\": 1}",
        "version: 1\nversion: 1",
        "version: 1\n\trules: 1",
        "a: b: c",
        "version: 1\n---\nversion: 1",
        "a: *unknown",
        "version: 1\nrules:\n  r:\n    limits: {a: {max: 1, max: 2, per: 1s}}",
        "a: \u{0}",
        &deep,
    ] {
        let shown: String = text.chars().take(60).collect();
        book.refused(&format!("{shown:?}"), Policy::from_text(text));
    }
    let bomb: String = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".into(), |text, n| {
        let uses = vec![format!("*a{}", n - 1); 9].join(", ");
        format!("{text}a{n}: &a{n} [{uses}]\n")
    });
    book.refused("aliases of aliases", Policy::from_text(&bomb));
    let one = |field: &str| format!("version: 1\nrules: {{ r: {{ limits: 5/s, {field} }} }}");
    for field in
        ["warn_at: .nan", "warn_at: .inf", "capacity: 1e400", "capacity: 99999999999999999999"]
    {
        book.refused(field, Policy::from_text(&one(field)));
    }
    book.refused("5 MB", Policy::from_text(&"#".repeat(5 << 20)));
}

fn variables(book: &mut Book) {
    book.head("variables of the environment");
    for value in ["${TIDEGATE_NOT_SET}", "${TIDEGATE_NOT_SET:-x}", "${", "${}", "${a b}"] {
        let text = format!("version: 1\nrules: {{ r: {{ limits: 5/s, capacity: \"{value}\" }} }}");
        book.refused(value, Policy::from_text(&text));
    }
}

fn files(book: &mut Book) {
    book.head("files");
    book.refused("a file that is not there", Limiter::from_file(folder().join("absent.yaml")));
    book.refused("a folder", Limiter::from_file(folder()));
    book.refused("bytes that are no text", Limiter::from_file(file("bytes.yaml", [0xff, 0xfe, 0])));
    book.refused("an empty file", Limiter::from_file(file("empty.yaml", "")));
    #[cfg(unix)]
    book.refused("a file without an end", Limiter::from_file("/dev/zero"));
    let text = "version: 1\nrules: { r: { limits: 5/mni } }";
    book.refused("a mistake in a file", Limiter::from_file(file("mistake.yaml", text)));
    let text = "version: 1\nmemory: 1KB\nrules: { r: { limits: 5/s } }";
    book.refused("too little memory in a file", Limiter::from_file(file("memory.yaml", text)));
}

fn policies(book: &mut Book) {
    book.head("fields of a policy");
    let rules = json!({"r": {"limits": "5/s"}});
    book.refused("no version", Limiter::from_value(&json!({"rules": rules})));
    for (field, value) in [
        ("version", json!(2)),
        ("version", json!("1")),
        ("version", json!({"a": 1})),
        ("colour", json!("blue")),
        ("capactiy", json!(5)),
        ("store", json!(5)),
        ("capacity", json!("many")),
        ("capacity", json!(0)),
        ("capacity", json!(u64::MAX)),
        ("on_full", json!("alow")),
        ("on_full", json!(1)),
        ("memory", json!("5 TB")),
        ("memory", json!(-1)),
        ("memory", json!(1000)),
        ("fallback", json!("s")),
        ("fallback", json!("nowhere")),
        ("headers", json!("X")),
        ("headers", json!({"limt": "X"})),
        ("headers", json!({"limit": "a b"})),
        ("headers", json!({"limit": 5})),
        ("on_outage", json!("allow")),
        ("deadline", json!("25ms")),
        ("share", json!(0.5)),
        ("lease", json!("10s")),
        ("rules", json!([])),
        ("rules", json!({})),
        ("rules", json!(null)),
        ("rules", json!({"": {"limits": "5/s"}})),
        ("rules", json!({"r": "5/s"})),
    ] {
        let mut policy = json!({"version": 1, "rules": rules});
        policy[field] = value.clone();
        book.refused(&format!("{field}: {value}"), Limiter::from_value(&policy));
    }
    let policy = json!({"version": 1, "capacity": 1_000_000, "rules": {
        "logins": {"limits": "4000/day window"}, "calls": {"limits": "10/s"}}});
    book.refused("windows for a million keys", Limiter::from_value(&policy));
}

fn rules(book: &mut Book) {
    book.head("fields of a rule");
    book.refused("no limits", Limiter::from_value(&of_rule(json!({}))));
    let whole = json!({"daily": 5});
    for (field, value) in [
        ("limts", json!("5/s")),
        ("key", json!([])),
        ("key", json!({})),
        ("key", json!(["a", "a"])),
        ("key", json!([""])),
        ("key", json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"])),
        ("limits", json!(5)),
        ("limits", json!([])),
        ("limits", json!(["5/s", 5])),
        ("limits", json!({})),
        ("warn_at", json!("high")),
        ("warn_at", json!(80)),
        ("cooldown", json!(60)),
        ("cooldown", json!("60")),
        ("cooldown", json!("400d")),
        ("cooldown", json!([])),
        ("notify", json!("never")),
        ("mode", json!("on")),
        ("mode", json!(true)),
        ("penalty_scope", json!(["x"])),
        ("ceiling", json!("all")),
        ("capacity", json!(0)),
        ("on_full", json!("drop")),
        ("when", json!({})),
        ("exempt", json!({"role": "admin"})),
        ("exempt", json!(["admin"])),
        ("exempt", json!([{"role": []}])),
        ("exempt", json!([{"role": {"a": 1}}])),
        ("exempt", json!([{"ip": "10.0.0.0/33"}])),
        ("exempt", json!([{"ip": "localhost"}])),
        ("backoff", json!("1s")),
        ("backoff", json!({})),
        ("backoff", json!({"steps": [], "quiet": "1m"})),
        ("backoff", json!({"steps": "1s", "quiet": "1m"})),
        ("backoff", json!({"steps": [1, "0s"], "quiet": "1m"})),
        ("backoff", json!({"steps": ["0s"], "quiet": "400d", "round": "0s"})),
        ("backoff", json!({"steps": ["1s"], "quiet": "1m", "enforce": "yes"})),
        ("backoff", json!({"steps": ["1s"], "quiet": "1m", "quite": 1})),
        ("alert", json!({"violations": 5})),
        ("alert", json!({"violations": 0, "within": "5m"})),
        ("alert", json!({"violations": 99_999_999, "within": "0s"})),
        ("alert", json!([])),
        ("budget", json!(5)),
        ("budget", json!({})),
        ("budget", json!({"daily": -5})),
        ("budget", json!({"daily": u64::MAX})),
        ("budget", json!({"daily": 5, "reset_hour_utc": 300})),
        ("budget", json!({"daily": 5, "reset_hour_utc": 24})),
        ("budget", json!({"daily": 5, "unit": 5})),
        ("budget", json!({"dayly": 5})),
        ("classify", json!({})),
        (
            "classify",
            json!({"from": [], "to": "b",
            "map": 5, "default": "c"}),
        ),
        ("classify", json!({"from": "a", "to": "a", "map": {}, "default": "c"})),
    ] {
        book.refused(
            &format!("{field}: {value}"),
            Limiter::from_value(&with(field, value.clone())),
        );
    }
    let rule = json!({"key": ["tier", "user"], "limits": "5/s", "budget": whole,
        "classify": {"from": "action", "to": "tier", "map": {}, "default": "c"}});
    book.refused("classify into the first part", Limiter::from_value(&of_rule(rule)));
    let window = |ceiling: u64| of_rule(json!({"limits": "50/s window", "ceiling": ceiling}));
    book.refused("a ceiling below the window", Limiter::from_value(&window(10)));
    book.refused("a ceiling above all windows", Limiter::from_value(&window(5000)));
}

fn limits(book: &mut Book) {
    book.head("limits as maps");
    for limit in [
        json!({}),
        json!(5),
        json!("5/mni"),
        json!({"max": 5}),
        json!({"per": "1m"}),
        json!({"max": -1, "per": "1m"}),
        json!({"max": 1.5, "per": "1m"}),
        json!({"max": "x", "per": "1m"}),
        json!({"max": 1_000_000_001, "per": "1m"}),
        json!({"max": 5, "per": 60}),
        json!({"max": 5, "per": "0s"}),
        json!({"max": 5, "per": "400d"}),
        json!({"max": 5, "per": "1m", "burst": 0}),
        json!({"max": 5, "per": "1m", "burst": "x"}),
        json!({"max": 5, "per": "1m", "burst": 5, "algorithm": "fixed"}),
        json!({"max": 5, "per": "1m", "algorithm": "leaky"}),
        json!({"max": 5000, "per": "1m", "algorithm": "window"}),
        json!({"max": 5, "per": "1m", "lease": "5s"}),
        json!({"max": 5, "per": "1m", "algorithm": "concurrent"}),
        json!({"max": 5, "algorithm": "concurrent", "lease": "0s"}),
        json!({"max": 5, "per": "1m", "cooldown": 5}),
        json!({"max": 5, "per": "1m", "cooldown": "400d"}),
        json!({"max": 5, "per": "1m", "scope": ["x"]}),
        json!({"max": 5, "per": "1m", "counts": "bytes"}),
        json!({"max": 5, "algorithm": "concurrent", "counts": "hits"}),
        json!({"max": 5, "per": "1m", "brust": 5}),
        json!({"max": 5, "per": "1m", "name": "b"}),
        json!({"max": 5, "prr": "1m"}),
    ] {
        book.refused(&limit.to_string(), Limiter::from_value(&with("limits", json!({"a": limit}))));
    }
    book.head("names of limits");
    for names in [
        json!({"cooldown": "5/s"}),
        json!({"": "5/s"}),
        json!({"größe": "5/s"}),
        json!({"a\nb": "5/s"}),
    ] {
        book.refused(&names.to_string(), Limiter::from_value(&with("limits", names.clone())));
    }
    let nine: Vec<String> = (1..10).map(|n| format!("{n}/s")).collect();
    book.refused("nine limits", Limiter::from_value(&with("limits", json!(nine))));
    book.refused(
        "two of a name",
        Limiter::from_value(&with("limits", json!(["5/s", "5/s window"]))),
    );
    book.refused(
        "two of permits",
        Limiter::from_value(&with("limits", json!(["5 concurrent", "6 concurrent"]))),
    );
    let scoped = |scope: Value| json!({"max": 5, "per": "1s", "scope": scope});
    let rule = json!({"key": ["a", "b", "c"], "limits": {
        "1": scoped(json!(["a"])), "2": scoped(json!(["b"])),
        "3": scoped(json!(["c"])), "4": scoped(json!([])), "5": scoped(json!(["a", "b"]))}});
    book.refused("five scopes", Limiter::from_value(&of_rule(rule)));
    let hits = |scope: Value| json!({"max": 5, "per": "1s", "scope": scope, "counts": "hits"});
    let rule = json!({"key": ["a", "b", "c"], "limits": {
        "1": scoped(json!(["a"])), "2": hits(json!(["a"])),
        "3": scoped(json!(["b"])), "4": hits(json!(["b"])), "5": hits(json!([]))}});
    book.refused("five groups in three scopes", Limiter::from_value(&of_rule(rule)));
}

fn whens(book: &mut Book) {
    book.head("entries of when");
    for (limits, entry) in [
        ("5/s", json!({})),
        ("5/s", json!("x")),
        ("5/s", json!({"match": "x"})),
        ("5/s", json!({"match": {}, "limit": {}})),
        ("5/s", json!({"match": {}, "limits": {"5/m": {"max": 1}}})),
        ("5/s", json!({"match": {}, "limits": {"per-day": {"max": 1}}})),
        ("5/s", json!({"match": {}, "limits": 5})),
        ("5/s", json!({"match": {}, "limits": {"5/s": {"algorithm": "fixed", "scope": []}}})),
        ("5/s", json!({"match": {}, "limits": {"5/s": {"counts": "hits"}}})),
        ("5/s", json!({"match": {}, "limits": {"5/s": {"maxx": 5, "per": 5}}})),
        ("5/s", json!({"match": {}, "limits": "60/s window"})),
        ("5/s", json!({"match": {}, "limits": "60/mni"})),
        ("5/s", json!({"match": {}, "limits": {"5/s": {"lease": "5s"}}})),
        ("5/s window", json!({"match": {}, "limits": "5 concurrent"})),
        ("5 concurrent", json!({"match": {}, "limits": {"5": {"per": "5s"}}})),
        ("5 concurrent", json!({"match": {}, "limits": "5/s"})),
        ("5/s, 6/s", json!({"match": {}, "limits": "60/s"})),
        (
            "5/s",
            json!({"match": {}, "limits": {"5/s": {"max": 2_000_000_000, "cooldown": "400d"}}}),
        ),
        ("5/s window", json!({"match": {}, "limits": {"5/s": {"max": 5000}}})),
        (
            "5/s",
            json!({"match": {"ip": "x"}, "warn_at": 5, "mode": "x", "notify": "x", "cooldown": 1}),
        ),
    ] {
        let rule = json!({"limits": limits, "when": [entry]});
        book.refused(&format!("{limits} and {entry}"), Limiter::from_value(&of_rule(rule)));
    }
}

fn together(book: &mut Book) {
    book.head("several mistakes");
    let text = "
version: 1
colour: blue
share: 2
rules:
  a: { limits: 5/mni, mode: loud }
  b: { limits: { x: { max: 2000000000, per: 1s }, y: { max: 5, per: 400d } } }
  c: { limits: { x: { brust: 5 } }, exempt: [ { ip: x } ], warn_at: 2 }
  d: { limits: 4000/day window, capacity: 10000000 }
";
    book.refused("of all kinds", Policy::from_text(text));
    let many: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("r{n}"), json!({"limits": 5}))).collect();
    let few = Policy::from_value(&json!({"version": 1, "rules": many})).unwrap_err();
    assert_eq!(few.problems().len(), 60);
    let name = format!("\u{1b}]0;title\u{7}{}", "x".repeat(100_000));
    book.refused(
        "a field of 100 KB with control characters",
        Policy::from_value(&with(&name, json!(1))),
    );
}

fn calls(book: &mut Book) {
    book.head("calls");
    let limiter = Limiter::from_value(&json!({"version": 1, "rules": {
        "messages": {"key": ["channel", "sender"], "limits": "5/s, 9/min"},
        "jobs": {"limits": "2 concurrent"},
        "logins": {"limits": "5/min window", "ceiling": 10},
        "classed": {"key": ["user", "tier"], "limits": "5/s",
            "classify": {"from": "action", "to": "tier", "map": {}, "default": "normal"}},
    }}))
    .unwrap();
    let rule = |name: &str| limiter.rule(name).unwrap();
    book.refused("rule(\"mesages\")", limiter.rule("mesages"));
    book.refused("rule(\"payments\")", limiter.rule("payments"));
    book.refused("rule of 1 MB", limiter.rule(&"x".repeat(1 << 20)));
    book.refused("hit without a rule", limiter.hit("alice", 1));
    book.refused("hit: one part of two", rule("messages").hit("alice", 1));
    book.refused("hit: three parts of two", rule("messages").hit(["a", "b", "c"], 1));
    book.refused("hit: two parts of one", rule("logins").hit(["a", "b"], 1));
    book.refused("hit: a part that classify makes", rule("classed").hit(["a", "b"], 1));
    let jobs = rule("jobs");
    book.refused("allow on permits", jobs.allow("a"));
    book.refused("hit on permits", jobs.hit("a", 1));
    book.refused("check on permits", jobs.check("a", 1));
    book.refused("record on permits", jobs.record("a", 1));
    book.refused("reserve on permits", jobs.reserve("a", 1));
    book.refused("allow_many on permits", jobs.allow_many(&["a"]));
    book.refused("hit_many on permits", jobs.hit_many(["a"]));
    book.refused("wait on permits", jobs.wait("a", 1, None));
    book.refused("wait_reservation on permits", jobs.wait_reservation("a", 1, None));
    book.refused("permit without a concurrent limit", rule("logins").permit("a"));
    book.refused("wait_permit without a concurrent limit", rule("logins").wait_permit("a", None));
    book.refused("max on several limits", rule("messages").hit(Call::of(["a", "b"]).max(5), 1));
    book.refused("max above the ceiling", rule("logins").hit(Call::of("a").max(11), 1));
    book.refused("max above all", rule("classed").hit(Call::of("a").max(u64::MAX), 1));
    book.refused("spend without a budget", rule("logins").spend("a", 5));
    book.refused("budget without a budget", rule("logins").budget("a"));

    book.head("changes at run time");
    let patch = |name: &str, patch: LimitPatch| vec![(name.to_string(), patch)];
    let logins = rule("logins");
    book.refused("an unknown limit", logins.set_default(patch("5/m", LimitPatch::max(1))));
    book.refused("above the ceiling", logins.set_default(patch("5/min", LimitPatch::max(11))));
    book.refused(
        "above the ceiling for a key",
        logins.set_override(Target::key("a"), patch("5/min", LimitPatch::max(11))),
    );
    let lease = LimitPatch::default().lease(Duration::from_secs(1));
    book.refused("a lease of a window", logins.set_default(patch("5/min", lease)));
    let per = LimitPatch::default().per(Duration::from_secs(1));
    book.refused("a period of permits", jobs.set_override(Target::key("a"), patch("2", per)));
    let bucket = limit_patches(&json!("5/min bucket"), &["5/min"]).unwrap();
    book.refused("another algorithm", logins.set_override(Target::key("a"), bucket));
    let (mut scope, mut counts) = (LimitPatch::default(), LimitPatch::default());
    scope.scope = Some(Vec::new());
    counts.counts = Some(Counts::Hits);
    book.refused("another count", logins.set_default(patch("5/min", counts)));
    book.refused("another scope", logins.set_default(patch("5/min", scope)));
    book.refused(
        "a key of other parts",
        logins.set_override(Target::key(["a", "b"]), patch("5/min", LimitPatch::max(1))),
    );
    let nowhere = Match::new([("ip", "nowhere")]);
    book.refused(
        "a match of no address",
        logins.set_override(nowhere.clone(), patch("5/min", LimitPatch::max(1))),
    );
    book.refused("an exemption of no address", logins.add_exempt(nowhere));
    book.refused(
        "a map of changes",
        limit_patches(&json!({"a": {"algorithm": "fixed", "mxa": 5}}), &["a"]),
    );
    book.refused("a text for two limits", limit_patches(&json!("5/s"), &["a", "b"]));
    book.refused("a match that is none", Match::from_value(&json!([1])));
    book.refused("a rule that is none", RuleConfig::from_value(&json!("5/s")));
    assert!(logins.overrides().unwrap().is_empty() && logins.exempts().unwrap().is_empty());

    book.head("addresses");
    for address in ["", "localhost", "1.2.3", "1.2.3.4:80", "[::1]", "::1%", "1.2.3.4\n"] {
        book.refused(&format!("{address:?}"), ip_key(address, 56));
    }
    book.refused("a prefix of 129", ip_key("::1", 129));
}

fn stores(book: &mut Book) {
    book.head("stores");
    let on = |store: &str| Limiter::builder().store(store).limits("5/s").build();
    for store in [
        "",
        "disk",
        "memory:",
        "file:",
        "file:/dev/null",
        "file:/dev/null/folder",
        "redis://user:secret@host",
        "postgres://user:secret@host",
    ] {
        book.refused(&format!("{store:?}"), on(store));
    }
    assert!(!book.0.replace("user:secret@host\"\n", "").contains("secret"), "a password is shown");
    let _first = on("memory:errors").unwrap();
    let other = |limits: &str, capacity: Option<usize>, clock: Option<&ManualClock>| {
        let clock = clock.map(ManualClock::clock).unwrap_or_default();
        let options = Limiter::builder().store("memory:errors").capacity(capacity).clock(clock);
        options.limits(limits).build()
    };
    book.refused("shared, with other limits", other("6/s fixed", None, None));
    book.refused("shared, with another capacity", other("5/s", Some(5), None));
    let clock = ManualClock::new(Duration::ZERO, Duration::ZERO);
    book.refused("shared, with another clock", other("5/s", None, Some(&clock)));
}

fn lives(book: &mut Book) {
    book.head("reload and close");
    let limiter = Limiter::new("5/s").unwrap();
    book.refused("reload without a file", limiter.reload());
    let path = file("live.yaml", "version: 1\nrules: { r: { limits: 5/h } }");
    let live = Limiter::from_file(&path).unwrap();
    let mut reload = |what: &str, text: &str| {
        std::fs::write(&path, text).unwrap();
        book.refused(what, live.reload());
    };
    reload("reload of a mistake", "version: 1\nrules: { r: { limits: 9/mni } }");
    reload("reload of what can't be had", "version: 1\nrules: { r: { limits: 9/400d } }");
    reload(
        "reload with another store",
        "version: 1\nstore: memory:x\nrules: { r: { limits: 9/h } }",
    );
    reload(
        "reload of too much",
        "version: 1\nmemory: 5\nrules: { r: { limits: 9/h }, s: { limits: 1/s } }",
    );
    std::fs::remove_file(&path).unwrap();
    book.refused("reload of a file that is gone", live.reload());
    std::fs::write(&path, "version: 1\nrules: { r: { limits: 5/h } }").unwrap();
    let rule = live.rule("r").unwrap();
    live.close();
    book.refused("hit when closed", rule.hit("a", 1));
    book.refused("allow when closed", live.allow("a"));
    book.refused("reload when closed", live.reload());
    book.refused("metrics when closed", live.metrics());
}

fn all() -> String {
    let mut book =
        Book("Every message that a mistake can lead to. Written by tests/errors.rs.\n".into());
    for part in [
        limit_texts,
        texts,
        variables,
        files,
        policies,
        rules,
        limits,
        whens,
        together,
        calls,
        stores,
        lives,
    ] {
        part(&mut book);
    }
    let _ = std::fs::remove_dir_all(folder());
    book.0
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the book has file stores, and Linux's own errors")]
fn every_message_is_as_it_was_read_and_agreed() {
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors.txt");
    let got = all();
    assert!(!got.contains(ACCEPTED), "{got}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &got).unwrap();
    }
    let expected = std::fs::read_to_string(expected).unwrap_or_default();
    for (line, (got, expected)) in got.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, expected, "line {}; UPDATE=1 writes the file anew", line + 1);
    }
    assert_eq!(got.lines().count(), expected.lines().count(), "UPDATE=1 writes the file anew");
}

#[test]
fn a_reload_that_is_refused_changes_nothing() {
    let path = std::env::temp_dir().join(format!("tidegate-reload-{}.yaml", std::process::id()));
    std::fs::write(&path, "version: 1\nrules: { r: { limits: 2/h } }").unwrap();
    let limiter = Limiter::from_file(&path).unwrap();
    assert!(limiter.allow("a").unwrap());
    for text in [
        "version: 1\nrules: { r: { limits: 9/mni }, s: { limits: 1/s } }",
        "version: 1\nstore: memory:other\nrules: { r: { limits: 9/h } }",
        "version: 1\nmemory: 1\nrules: { r: { limits: 9/h } }",
    ] {
        std::fs::write(&path, text).unwrap();
        assert!(limiter.reload().is_err());
        assert_eq!(limiter.rules(), ["r"]);
        let left = limiter.peek("a", 0).unwrap();
        assert_eq!((left.limit, left.remaining), (Some(2), Some(1)));
    }
    let _ = std::fs::remove_file(&path);
}

#[test]
fn codes_tell_what_kind_of_mistake_it_is() {
    let limiter = Limiter::new("5/s").unwrap();
    assert_eq!(limiter.rule("x").unwrap_err().code(), Code::Rule);
    assert_eq!(limiter.hit(["a", "b"], 1).unwrap_err().code(), Code::Key);
    assert_eq!(limiter.permit("a").unwrap_err().code(), Code::Operation);
    assert_eq!(Policy::from_file("/nowhere").unwrap_err().code(), Code::File);
    limiter.close();
    assert_eq!(limiter.hit("a", 1).unwrap_err().code(), Code::Closed);
}
