//! The JSON Schema of policy files, for editors.
//!
//! The types below are never filled: they have the shape of a file, and [`schema`] reads their
//! fields and comments. Numbers, choices and periods may be texts too, since `${NAME:-default}` is
//! one.
#![expect(dead_code, reason = "the fields are there to be described, not read")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::config::limit::{ALGORITHMS, COUNTS};
use crate::config::read::{MODES, NOTIFY, ON_FULL};

/// The JSON Schema of policy files, as `policy.schema.json` has it.
///
/// ```
/// assert_eq!(tidegate::schema()["title"], "Tidegate policy");
/// ```
pub fn schema() -> Value {
    // Draft 7 is what editors' YAML extensions know.
    SchemaSettings::draft07().into_generator().into_root_schema_for::<File>().to_value()
}

/// Where a variable is taken from the environment.
const VARIABLE: &str = r"\$\{";
const PERIOD: &str =
    r"^([0-9]+ ?)?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)$|\$\{";

/// Describes values that have a form of their own: a name, and the schema.
macro_rules! forms {
    ($($(#[$meta:meta])* $name:ident => $schema:expr;)*) => {
        $(
            $(#[$meta])*
            struct $name;

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $schema
                }
            }
        )*
    };
}

forms! {
    Version => json_schema!({"const": 1});
    Whole => json_schema!({
        "description": "A whole number from 0 on.",
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^[0-9]+$|\$\{"}
        ]
    });
    Fraction => json_schema!({
        "description": "A number from 0 to 1.",
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "string", "pattern": r"^[0-9.]+$|\$\{"}
        ]
    });
    Truth => json_schema!({
        "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"^(true|false)$|\$\{"}]
    });
    Period => json_schema!({
        "description": "An optional whole number and a unit: 250ms, 10s, min, 2h, 1d.",
        "type": "string",
        "pattern": PERIOD
    });
    Bytes => json_schema!({
        "description": "Bytes: a plain number, or one with KB, MB or GB.",
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^[0-9]+ *(KB|MB|GB)?$|\$\{"}
        ]
    });
    Scalar => json_schema!({"type": ["string", "number", "boolean"]});
    Store => json_schema!({
        "type": "string",
        "pattern": r"^(memory(:.+)?|file:.+)$|\$\{"
    });
    Algorithm => choice(ALGORITHMS);
    Counts => choice(COUNTS);
    Notify => choice(NOTIFY);
    OnFull => choice(ON_FULL);
    // Some YAML readers take a plain `off` for false.
    Mode => json_schema!({"anyOf": [choice(MODES), {"const": false}]});
}

fn choice<T, const N: usize>(choices: [(&'static str, T); N]) -> Schema {
    let names = choices.map(|(name, _)| name).to_vec();
    json_schema!({"anyOf": [{"enum": names}, {"type": "string", "pattern": VARIABLE}]})
}

/// One value, or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Values {
    One(Scalar),
    Several(Vec<Scalar>),
}

/// Key parts or attributes, and the values that they must have. Values of `ip` may be ranges such
/// as 10.0.0.0/8.
type Match = BTreeMap<String, Values>;

/// Rules for how much keys may spend over time. Any text may take variables of the environment:
/// `${NAME}`, or `${NAME:-default}`.
#[derive(JsonSchema)]
#[schemars(title = "Tidegate policy", deny_unknown_fields)]
struct File {
    /// The version of this form: 1.
    version: Version,
    /// Where state lives: `memory`; `memory:NAME`, one for all who name it in the process;
    /// `file:PATH`, a folder for all processes of the host.
    store: Option<Store>,
    /// Keys that a rule may hold live at once, unless it says otherwise. Unless set, each rule
    /// takes what fits into its share of `memory`: 1024 to 65536.
    capacity: Option<Whole>,
    /// What happens to a new key when all places are taken: it shares a bucket with others
    /// (`overflow`, the default), is denied, or is allowed.
    on_full: Option<OnFull>,
    /// What all tables together may take. 256MB unless set.
    memory: Option<Bytes>,
    /// Whether the folder of a file store is shared with its group: the folder has mode 0770, its
    /// files 0660. No unless set.
    group: Option<Truth>,
    /// The rule for unknown rule names.
    fallback: Option<String>,
    /// Names of the legacy headers.
    headers: Option<Headers>,
    /// Rules by their names.
    rules: BTreeMap<String, Rule>,
}

/// Names of the legacy headers.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Headers {
    /// The limit's size. `X-RateLimit-Limit` unless set.
    limit: Option<String>,
    /// What is left. `X-RateLimit-Remaining` unless set.
    remaining: Option<String>,
    /// When to come again, or when all is back. `X-RateLimit-Reset` unless set.
    reset: Option<String>,
}

/// Limits that are taken together, all or nothing, and what happens around them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Rule {
    /// Names of the key's parts, in order. One part, `key`, unless set.
    key: Option<Values>,
    /// One or more limits.
    limits: Limits,
    /// An allowed hit that leaves less than 1 - `warn_at` of a limit sets `warning`.
    warn_at: Option<Fraction>,
    /// How long a key is refused after a denial, by limits that don't say otherwise.
    cooldown: Option<Period>,
    /// Longer and longer waits for those who are denied again and again.
    backoff: Option<Backoff>,
    /// When denials are worth an alert.
    alert: Option<Alert>,
    /// Whether the caller should tell the sender: never (`silent`), on the first denial of an
    /// episode (`once`), or on every one (`always`, the default).
    notify: Option<Notify>,
    /// The key parts that cooldown, backoff, alert and notices are kept for. All unless set.
    penalty_scope: Option<Values>,
    /// What a key may spend in a day.
    budget: Option<Budget>,
    /// Turns an attribute of the call into another, or into the last part of its key.
    classify: Option<Classify>,
    /// Other values for calls that match. The closest entry applies.
    when: Option<Vec<When>>,
    /// Calls that are always allowed, and not counted.
    exempt: Option<Vec<Match>>,
    /// `enforce` (the default); `shadow`, where denials are told and not done; `off`, where nothing
    /// is counted.
    mode: Option<Mode>,
    /// Free data handed back with a denial.
    attach: Option<Value>,
    /// The largest `max` that changes at run time may ask of a window.
    ceiling: Option<Whole>,
    /// Keys that this rule may hold live at once.
    capacity: Option<Whole>,
    /// What happens to a new key when all places are taken.
    on_full: Option<OnFull>,
}

/// Limits: a text such as `5/10s window, 20/min`, a list, or a map by names.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Limits {
    Text(String),
    List(Vec<AnyLimit>),
    Named(BTreeMap<String, AnyLimit>),
}

/// A limit: `MAX/PERIOD [burst N] [ALGORITHM]`, `N concurrent [lease PERIOD]`, or a map.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum AnyLimit {
    Text(String),
    Map(Limit),
}

/// How much one key may spend over time.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Limit {
    /// What decisions call it, if it is not in a map by names.
    name: Option<String>,
    /// How much in each period, or how many permits at once. 0: never.
    max: Whole,
    /// The period.
    per: Option<Period>,
    /// A bucket's size. `max` unless set.
    burst: Option<Whole>,
    /// How it counts. `bucket` unless set.
    algorithm: Option<Algorithm>,
    /// How long a permit of a concurrent limit holds that is not released. 60s unless set.
    lease: Option<Period>,
    /// How long the whole key is refused after a denial by this limit.
    cooldown: Option<Period>,
    /// The key parts that it counts by; none: one count for all keys. All unless set.
    scope: Option<Values>,
    /// What it takes of each hit: its cost, or 1. `cost` unless set. Not for a concurrent limit.
    counts: Option<Counts>,
}

/// What is different for calls that match.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct When {
    /// Which calls.
    r#match: Match,
    /// What changes of which limits.
    limits: Option<Patches>,
    /// Another `warn_at`.
    warn_at: Option<Fraction>,
    /// Another cooldown for limits that have none of their own.
    cooldown: Option<Period>,
    /// Another backoff.
    backoff: Option<Backoff>,
    /// Another alert.
    alert: Option<Alert>,
    /// Another `notify`.
    notify: Option<Notify>,
    /// Another mode.
    mode: Option<Mode>,
    /// Other data for denials.
    attach: Option<Value>,
}

/// Changes by the limits' names, or, where the rule has one limit, a text.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Patches {
    Text(String),
    Named(BTreeMap<String, AnyPatch>),
}

/// A text whose numbers are taken, or a map of what changes.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum AnyPatch {
    Text(String),
    Map(Patch),
}

/// What changes of a limit; the rest stays.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Patch {
    /// Another `max`; an unwritten burst follows it.
    max: Option<Whole>,
    /// Another period.
    per: Option<Period>,
    /// Another bucket size.
    burst: Option<Whole>,
    /// Another lease of a concurrent limit.
    lease: Option<Period>,
    /// Another cooldown.
    cooldown: Option<Period>,
    /// The algorithm that the limit has. Another is an error.
    algorithm: Option<Algorithm>,
    /// The scope that the limit has. Another is an error.
    scope: Option<Values>,
    /// What the limit counts. Anything else is an error.
    counts: Option<Counts>,
}

/// Longer and longer waits for those who are denied again and again.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Backoff {
    /// What the first denial reports at least, the second, and so on; the last step repeats.
    steps: Vec<Period>,
    /// So long without a denial starts over.
    quiet: Period,
    /// Waits are rounded up to a multiple of this.
    round: Option<Period>,
    /// Whether hits are refused until then. Advice unless set.
    enforce: Option<Truth>,
}

/// When denials are worth an alert.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Alert {
    /// So many denials,
    violations: Whole,
    /// in a span of this length from the first one.
    within: Period,
}

/// What a key may spend in a day.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Budget {
    /// Whole units in a UTC day; hits are denied when they are spent.
    daily: Whole,
    /// What one hit should cost at most; more is reported.
    per_hit: Option<Whole>,
    /// The hour, 0 to 23, when the day begins. 0 unless set.
    reset_hour_utc: Option<Whole>,
    /// What is counted: cents, model tokens.
    unit: Option<String>,
}

/// Turns an attribute of a call into another, or into the last part of its key.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Classify {
    /// The attribute that calls bring.
    from: Scalar,
    /// The attribute or the last key part that is made of it.
    to: Scalar,
    /// What is made of what.
    map: BTreeMap<String, Scalar>,
    /// What is made of anything else.
    default: Scalar,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read::fields;

    fn names(schema: &Value) -> Vec<&str> {
        let mut names: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn it_has_the_fields_that_are_read() {
        let schema = schema();
        let of = |name: &str| &schema["definitions"][name];
        for (shape, fields) in [
            (&schema, fields::POLICY),
            (of("Rule"), fields::RULE),
            (of("Limit"), fields::LIMIT),
            (of("Patch"), fields::PATCH),
            (of("When"), fields::WHEN),
            (of("Backoff"), fields::BACKOFF),
            (of("Alert"), fields::ALERT),
            (of("Budget"), fields::BUDGET),
            (of("Classify"), fields::CLASSIFY),
            (of("Headers"), fields::HEADERS),
        ] {
            let mut fields = fields.to_vec();
            fields.sort_unstable();
            assert_eq!(names(shape), fields);
            assert_eq!(shape["additionalProperties"], false);
        }
    }
}
