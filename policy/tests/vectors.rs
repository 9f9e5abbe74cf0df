//! Replays the shared vectors of `tests/vectors`: every surface gives these answers (I11).

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate::bindings::limit_patches;
use tidegate::{
    BlockedKey, Budget, Call, ChangeOptions, Changing, Decision, Error, Key, Limiter, ManualClock,
    Match, Mode, Part, Permit, Reservation, Rule, Stats, Style, Target,
};

fn millis(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().unwrap_or(0))
}

fn ms(duration: Duration) -> Value {
    json!(duration.as_millis() as u64)
}

/// A key as a vector has it.
enum OwnedKey {
    Bytes(Vec<u8>),
    Signed(i64),
    Unsigned(u64),
    Address(IpAddr),
    /// Those that go together as a tuple.
    Pair(Box<[OwnedKey; 2]>),
    Parts(Vec<Vec<u8>>),
}

impl OwnedKey {
    fn new(value: &Value) -> OwnedKey {
        let hex = |text: &str| {
            let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(byte).collect()
        };
        let whole = |text: &str| match text.parse() {
            Ok(number) => OwnedKey::Unsigned(number),
            Err(_) => OwnedKey::Signed(text.parse().unwrap()),
        };
        match value {
            Value::String(text) => OwnedKey::Bytes(text.clone().into_bytes()),
            Value::Number(number) => OwnedKey::Signed(number.as_i64().unwrap()),
            Value::Array(parts) => match &parts[..] {
                [a, b] => OwnedKey::Pair(Box::new([OwnedKey::new(a), OwnedKey::new(b)])),
                parts => OwnedKey::Parts(parts.iter().map(|one| Self::new(one).bytes()).collect()),
            },
            Value::Object(map) => match map.iter().next().map(|(form, text)| (&form[..], text)) {
                Some(("hex", text)) => OwnedKey::Bytes(hex(text.as_str().unwrap())),
                Some(("whole", text)) => whole(text.as_str().unwrap()),
                Some(("address", text)) => {
                    OwnedKey::Address(text.as_str().unwrap().parse().unwrap())
                }
                other => panic!("{other:?} is no key"),
            },
            other => panic!("{other} is no key"),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            OwnedKey::Bytes(bytes) => bytes.clone(),
            OwnedKey::Signed(number) => number.to_string().into_bytes(),
            OwnedKey::Unsigned(number) => number.to_string().into_bytes(),
            OwnedKey::Address(address) => address.to_string().into_bytes(),
            OwnedKey::Pair(_) | OwnedKey::Parts(_) => panic!("a list is no part"),
        }
    }

    fn part(&self) -> Part<'_> {
        match self {
            OwnedKey::Bytes(bytes) => Part::from(&bytes[..]),
            OwnedKey::Signed(number) => Part::from(*number),
            OwnedKey::Unsigned(number) => Part::from(*number),
            _ => panic!("this is no part"),
        }
    }

    fn key(&self) -> Key<'_> {
        match self {
            OwnedKey::Bytes(bytes) => Key::from(&bytes[..]),
            OwnedKey::Signed(number) => Key::from(*number),
            OwnedKey::Unsigned(number) => Key::from(*number),
            OwnedKey::Address(address) => Key::from(*address),
            OwnedKey::Pair(pair) => Key::from((pair[0].part(), pair[1].part())),
            OwnedKey::Parts(parts) => Key::parts(parts.iter().map(Vec::as_slice)),
        }
    }
}

fn decision(decision: &Decision, style: Option<&str>) -> Value {
    let mut map = json!({
        "allowed": decision.allowed,
        "reason": decision.reason(),
        "limit": decision.limit,
        "remaining": decision.remaining,
        "retry_after_ms": decision.retry_after.map(ms),
        "reset_after_ms": ms(decision.reset_after),
        "warning": decision.warning,
        "alert": decision.alert,
        "notify": decision.notify,
        "would_deny": decision.would_deny(),
        "attach": decision.attach(),
        "limits": decision.limits().map(|left| json!({
            "name": left.name,
            "max": left.max,
            "remaining": left.remaining,
            "reset_after_ms": ms(left.reset_after),
            "more_after_ms": left.more_after.map(ms),
        })).collect::<Vec<_>>(),
    });
    let style = match style {
        Some("legacy") => Style::Legacy,
        Some("ietf") => Style::Ietf,
        _ => Style::Both,
    };
    let headers = decision.headers(style).into_iter().map(|(name, value)| (name, json!(value)));
    map["headers"] = Value::Object(headers.collect::<Map<_, _>>());
    map
}

fn budget(budget: &Budget) -> Value {
    json!({
        "spent": budget.spent,
        "remaining": budget.remaining,
        "over": budget.over,
        "over_per_hit": budget.over_per_hit,
        "reset_after_ms": ms(budget.reset_after),
    })
}

fn stats(stats: Option<Stats>) -> Value {
    let Some(stats) = stats else { return Value::Null };
    let limits: Map<String, Value> = stats
        .limits
        .into_iter()
        .map(|limit| {
            let used = json!({
                "used": limit.used,
                "max": limit.max,
                "remaining": limit.remaining,
                "reset_after_ms": ms(limit.reset_after),
            });
            (limit.name, used)
        })
        .collect();
    json!({
        "limits": limits,
        "cooldown_left_ms": ms(stats.cooldown_left),
        "violations": stats.violations,
        "budget": stats.budget.as_ref().map(budget),
        "blocked": stats.blocked.as_ref().map(BlockedKey::to_value),
    })
}

/// For how long a change is made, by whom, and why.
fn change_options(step: &Value) -> ChangeOptions {
    let text = |name: &str| step[name].as_str().map(str::to_string);
    let mut options = ChangeOptions::default().for_(step.get("for_ms").map(millis));
    (options.by, options.reason) = (text("by"), text("reason"));
    options
}

fn mode(name: &Value) -> Mode {
    match name.as_str().unwrap() {
        "enforce" => Mode::Enforce,
        "shadow" => Mode::Shadow,
        "off" => Mode::Off,
        other => panic!("{other} is no mode"),
    }
}

/// One case under way.
struct Run {
    limiter: Limiter,
    clock: ManualClock,
    reserved: HashMap<String, Option<Reservation>>,
    permits: HashMap<String, Permit>,
}

impl Run {
    fn target(&self, step: &Value) -> Target {
        match step.get("match") {
            Some(matches) => Target::Match(Match::from_value(matches).unwrap()),
            None => Target::key(OwnedKey::new(&step["key"]).key()),
        }
    }

    fn names(&self, rule: &str) -> Vec<String> {
        let policy = self.limiter.policy();
        let (_, rule) = policy.rules.iter().find(|(name, _)| name == rule).unwrap();
        rule.limits.iter().map(|limit| limit.name().to_string()).collect()
    }

    /// Makes a run-time change, and gives its number; none if the step is another operation.
    fn change(
        &self,
        changing: &Changing<'_>,
        name: &str,
        call: Call<'_>,
        step: &Value,
    ) -> Result<Option<u64>, Error> {
        let limits = || limit_patches(&step["limits"], &self.names(name));
        let matches = || Match::from_value(&step["match"]);
        let number = match step["op"].as_str().unwrap() {
            "set_override" => changing.set_override(self.target(step), limits()?)?,
            "clear_override" => changing.clear_override(self.target(step))?,
            "set_default" => changing.set_default(limits()?)?,
            "add_exempt" => changing.add_exempt(matches()?)?,
            "remove_exempt" => changing.remove_exempt(&matches()?)?,
            "set_exempts" => {
                let all = step["matches"].as_array().unwrap();
                changing
                    .set_exempts(all.iter().map(Match::from_value).collect::<Result<_, _>>()?)?
            }
            "set_mode" => changing.set_mode(mode(&step["mode"]))?,
            "clear_mode" => changing.clear_mode()?,
            "block" => changing.block(call)?,
            _ => return Ok(None),
        };
        Ok(Some(number))
    }

    fn step(&mut self, step: &Value) -> Result<Value, Error> {
        if step["op"] == "changes" {
            return Ok(self.limiter.changes(step["since"].as_u64().unwrap_or(0))?.to_value());
        }
        let name = step["rule"].as_str().unwrap_or("default");
        let rule: Rule = self.limiter.rule(name)?;
        let key = OwnedKey::new(step.get("key").unwrap_or(&json!("")));
        let attributes: Vec<(&str, &str)> = step["attributes"]
            .as_object()
            .map(|map| map.iter().map(|(n, v)| (n.as_str(), v.as_str().unwrap())).collect())
            .unwrap_or_default();
        let mut call = Call::of(key.key()).with(&attributes);
        if let Some(max) = step["max"].as_u64() {
            call = call.max(max);
        }
        let changing = rule.changing(change_options(step))?;
        if let Some(number) = self.change(&changing, name, call, step)? {
            return Ok(json!({ "number": number }));
        }
        let cost = step["cost"].as_u64().unwrap_or(1);
        let id = || step["id"].as_str().unwrap().to_string();
        let style = step["style"].as_str();
        Ok(match step["op"].as_str().unwrap() {
            "hit" => decision(&rule.hit(call, cost)?, style),
            "check" => decision(&rule.check(call, cost)?, style),
            "peek" => decision(&rule.peek(call, cost)?, style),
            "allow" => json!(rule.allow(call)?),
            "is_limited" => json!(rule.is_limited(call)?),
            "record" => {
                let recorded = rule.record(call, cost)?;
                json!({
                    "used": recorded.used,
                    "limit": recorded.limit,
                    "remaining": recorded.remaining,
                    "reset_after_ms": ms(recorded.reset_after),
                })
            }
            "refund" => json!(rule.refund(call, cost)?),
            "reset" => json!(rule.reset(call)?),
            "reset_all" => json!(rule.reset_all()?),
            "reserve" => {
                let reserved = rule.reserve(call, cost)?;
                let answer = decision(reserved.decision(), style);
                self.reserved.insert(id(), Some(reserved));
                answer
            }
            "settle" | "cancel" => {
                let reserved = self.reserved.get_mut(&id()).unwrap().take();
                match (reserved, step["actual"].as_u64()) {
                    (Some(reserved), Some(actual)) => reserved.settle(actual),
                    (Some(reserved), None) => reserved.cancel(),
                    (None, _) => {}
                }
                Value::Null
            }
            "permit" => {
                let permit = rule.permit(call)?;
                let answer = decision(permit.decision(), style);
                self.permits.insert(id(), permit);
                answer
            }
            "release" => json!({"released": self.permits[&id()].release()}),
            "renew" => json!({"renewed": self.permits[&id()].renew()}),
            "spend" => budget(&rule.spend(call, step["amount"].as_u64().unwrap())?),
            "budget" => budget(&rule.budget(call)?),
            "stats" => stats(rule.stats(call)?),
            "why" => rule.why(call, cost)?.to_value(),
            "unblock" => json!({ "unblocked": changing.unblock(call)? }),
            "blocks" => rule.blocks()?.iter().map(BlockedKey::to_value).collect(),
            "set_wall" => {
                self.clock.set_wall(millis(&step["wall_ms"]));
                Value::Null
            }
            other => panic!("unknown operation {other}"),
        })
    }
}

/// Whether all that is expected is there; `headers` and `attach` are compared whole.
fn holds(expected: &Value, got: &Value, whole: bool) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) if !whole => {
            expected.iter().all(|(field, value)| {
                let whole = field == "headers" || field == "attach";
                holds(value, got.get(field).unwrap_or(&Value::Null), whole)
            })
        }
        _ => expected == got,
    }
}

fn replay(case: &Value) -> Result<(), String> {
    let clock = ManualClock::new(millis(&case["start_ms"]), millis(&case["wall_ms"]));
    let options = Limiter::builder().clock(clock.clock());
    let limiter = options.value(&case["policy"]).build();
    if let Some(paths) = case["policy_error"].as_array() {
        let error = limiter.err().ok_or("the policy should be refused")?;
        for path in paths.iter().map(|path| path.as_str().unwrap()) {
            if !path.is_empty() && !error.problems().iter().any(|p| p.path.starts_with(path)) {
                return Err(format!("no problem at {path}: {error}"));
            }
        }
        return Ok(());
    }
    let limiter = limiter.map_err(|error| format!("the policy is refused: {error}"))?;
    let mut run = Run { limiter, clock, reserved: HashMap::new(), permits: HashMap::new() };
    for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        for _ in 0..step["repeat"].as_u64().unwrap_or(1) {
            if let Some(at) = step.get("at_ms") {
                run.clock.set(millis(at));
            }
            let failed = match (run.step(step), step.get("error"), step.get("expect")) {
                (Ok(got), None, Some(expected)) => {
                    (!holds(expected, &got, false)).then(|| format!("got {got}"))
                }
                (Ok(_), None, None) => None,
                (Ok(got), Some(_), _) => Some(format!("should be an error, got {got}")),
                (Err(error), Some(word), _) => {
                    let text = format!("{} {error}", error.code().as_str());
                    (!text.contains(word.as_str().unwrap()))
                        .then(|| format!("another error: {text}"))
                }
                (Err(error), None, _) => Some(format!("error: {error}")),
            };
            if let Some(failed) = failed {
                return Err(format!("step {index} {step}\n    {failed}"));
            }
        }
    }
    Ok(())
}

#[test]
fn all_vectors_hold() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let (mut cases, mut failures) = (0, Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let vectors: Value = serde_json::from_str(&text).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            cases += 1;
            if let Err(message) = replay(case) {
                let name = file.file_stem().unwrap().to_string_lossy().into_owned();
                failures.push(format!("{name}: {}\n  {message}", case["name"]));
            }
        }
    }
    assert!(cases >= 300, "only {cases} cases were found");
    assert!(failures.is_empty(), "{} of {cases} failed:\n{}", failures.len(), failures.join("\n"));
}
