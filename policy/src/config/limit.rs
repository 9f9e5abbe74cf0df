//! Limits as users state them: in text, by builder, or as maps; whole, or only what changes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use tidegate_core::{self as core, Algorithm};

use crate::config::suggest::nearest;
use crate::error::{Error, Problem};

/// A permit's lease unless stated.
pub(crate) const DEFAULT_LEASE: Duration = Duration::from_secs(60);
/// Names that a limit can't have, since a decision's `reason` uses them.
pub(crate) const REASONS: [&str; 9] =
    ["blocked", "cooldown", "backoff", "budget", "exempt", "off", "cost", "full", "outage"];

/// What a limit takes of each hit.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Counts, Limit};
/// let minute = Duration::from_secs(60);
/// let requests = Limit::bucket(60, minute).named("requests").counts(Counts::Hits);
/// let tokens = Limit::bucket(100_000, 24 * 60 * minute).named("tokens");
/// let limiter = tidegate::Limiter::new([requests, tokens]).unwrap();
/// assert!(limiter.hit("alice", 1_200).unwrap().allowed);
/// let stats = limiter.stats("alice").unwrap().unwrap();
/// assert_eq!((stats.limits[0].used, stats.limits[1].used), (1, 1_200));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counts {
    /// Its cost.
    #[default]
    Cost,
    /// 1, if its cost is not 0.
    Hits,
}

impl Counts {
    /// What is taken of a hit of `cost`.
    #[inline]
    pub(crate) fn of(self, cost: u64) -> u64 {
        match self {
            Counts::Cost => cost,
            Counts::Hits => cost.min(1),
        }
    }
}

/// How much one key may spend over time, by one algorithm.
///
/// ```
/// use std::time::Duration;
/// use tidegate::Limit;
///
/// let text: Limit = "100/s burst 20".parse().unwrap();
/// assert_eq!(text, Limit::bucket(100, Duration::from_secs(1)).burst(20));
/// assert_eq!(text.name(), "100/s");
/// let minute = Duration::from_secs(60);
/// let named = Limit::window(5, Duration::from_secs(10)).named("burst").cooldown(minute);
/// assert_eq!(named.name(), "burst");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    pub(crate) name: String,
    /// Whether the name is a label that was made of its parameters. A store knows such limits by
    /// position.
    pub(crate) labelled: bool,
    pub(crate) algorithm: Algorithm,
    pub(crate) max: u64,
    /// The period; of a concurrent limit the lease.
    pub(crate) per: Duration,
    pub(crate) burst: Option<u64>,
    pub(crate) cooldown: Option<Duration>,
    pub(crate) scope: Option<Vec<String>>,
    pub(crate) counts: Counts,
}

impl Limit {
    /// A limit by the algorithm of that name: see the shorthands.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// let limit = tidegate::Limit::new(tidegate::Algorithm::Fixed, 5, minute);
    /// assert_eq!(limit, tidegate::Limit::fixed(5, minute));
    /// ```
    pub fn new(algorithm: Algorithm, max: u64, per: Duration) -> Limit {
        let name = match algorithm.has_lease() {
            true => max.to_string(),
            false => format!("{max}/{}", period_text(per)),
        };
        let (labelled, burst, cooldown, scope) = (true, None, None, None);
        Limit { name, labelled, algorithm, max, per, burst, cooldown, scope, counts: Counts::Cost }
    }
    /// A token bucket that refills `max` tokens each `per`.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(tidegate::Limit::bucket(20, minute).to_string(), "20/min");
    /// ```
    pub fn bucket(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Bucket, max, per)
    }
    /// An exact sliding window.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(tidegate::Limit::window(20, minute).to_string(), "20/min window");
    /// ```
    pub fn window(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Window, max, per)
    }
    /// A two-cell sliding counter.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(tidegate::Limit::counter(20, minute).to_string(), "20/min counter");
    /// ```
    pub fn counter(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Counter, max, per)
    }
    /// A count that is forgotten `per` after its first hit.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(tidegate::Limit::fixed(20, minute).to_string(), "20/min fixed");
    /// ```
    pub fn fixed(max: u64, per: Duration) -> Limit {
        Limit::new(Algorithm::Fixed, max, per)
    }
    /// At most `max` permits at once, each for 60 s unless released, renewed, or told
    /// [otherwise](Limit::lease).
    ///
    /// ```
    /// assert_eq!(tidegate::Limit::concurrent(5).to_string(), "5 concurrent lease min");
    /// ```
    pub fn concurrent(max: u64) -> Limit {
        Limit::new(Algorithm::Concurrent, max, DEFAULT_LEASE)
    }

    /// With a name of its own. Without one it is named by its text, and that is a label only: a
    /// store knows such limits by their position among those of the same algorithm and scope.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(tidegate::Limit::bucket(20, minute).named("slow").name(), "slow");
    /// ```
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Limit {
        Limit { name: name.into(), labelled: false, ..self }
    }
    /// With a bucket of this size.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(tidegate::Limit::bucket(20, minute).burst(5).to_string(), "20/min burst 5");
    /// ```
    #[must_use]
    pub fn burst(self, burst: u64) -> Limit {
        Limit { burst: Some(burst), ..self }
    }
    /// With a lease for its permits.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// let limit = tidegate::Limit::concurrent(5).lease(minute / 2);
    /// assert_eq!(limit.to_string(), "5 concurrent lease 30s");
    /// ```
    #[must_use]
    pub fn lease(self, lease: Duration) -> Limit {
        Limit { per: lease, ..self }
    }
    /// With a cooldown for those whom it denies.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// let limit = tidegate::Limit::bucket(1, minute).cooldown(minute);
    /// let limiter = tidegate::Limiter::new(limit).unwrap();
    /// assert!(limiter.allow("a").unwrap() && !limiter.allow("a").unwrap());
    /// assert_eq!(limiter.hit("a", 1).unwrap().reason(), Some("cooldown"));
    /// ```
    #[must_use]
    pub fn cooldown(self, cooldown: Duration) -> Limit {
        Limit { cooldown: Some(cooldown), ..self }
    }
    /// Keyed by some of the rule's parts; by none, it is one for all keys.
    ///
    /// ```
    /// let minute = std::time::Duration::from_secs(60);
    /// let all = tidegate::Limit::bucket(1, minute).scope([""; 0]);
    /// let limiter = tidegate::Limiter::new(all).unwrap();
    /// assert!(limiter.allow("alice").unwrap() && !limiter.allow("bob").unwrap());
    /// ```
    #[must_use]
    pub fn scope<P: Into<String>>(self, parts: impl IntoIterator<Item = P>) -> Limit {
        Limit { scope: Some(parts.into_iter().map(Into::into).collect()), ..self }
    }

    /// Counting the cost of each hit, or hits. A concurrent limit counts permits, so that it can't
    /// have this.
    ///
    /// ```
    /// use tidegate::{Counts, Limit};
    /// let requests = Limit::bucket(2, std::time::Duration::from_secs(60)).counts(Counts::Hits);
    /// let limiter = tidegate::Limiter::new(requests).unwrap();
    /// assert_eq!(limiter.hit("alice", 50).unwrap().remaining, Some(1));
    /// ```
    #[must_use]
    pub fn counts(self, counts: Counts) -> Limit {
        Limit { counts, ..self }
    }

    /// What decisions call it: unless [named](Limit::named), its text up to the first space.
    ///
    /// ```
    /// assert_eq!("5/10s window".parse::<tidegate::Limit>().unwrap().name(), "5/10s");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }
    /// How it counts.
    ///
    /// ```
    /// let limit: tidegate::Limit = "5/10s window".parse().unwrap();
    /// assert_eq!(limit.algorithm(), tidegate::Algorithm::Window);
    /// ```
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
    /// How much in each period.
    ///
    /// ```
    /// assert_eq!("5/10s".parse::<tidegate::Limit>().unwrap().max(), 5);
    /// ```
    pub fn max(&self) -> u64 {
        self.max
    }
    /// The period; of a concurrent limit the lease.
    ///
    /// ```
    /// assert_eq!("5/10s".parse::<tidegate::Limit>().unwrap().per().as_secs(), 10);
    /// ```
    pub fn per(&self) -> Duration {
        self.per
    }

    /// A bucket's size, else `max`.
    pub(crate) fn size(&self) -> u64 {
        self.to_core(self.max).size()
    }

    /// Nanoseconds until the limit is as new after a charge.
    pub(crate) fn horizon(&self) -> u64 {
        self.to_core(self.max).horizon()
    }

    /// What the engine has to know of it. The log of a window is made for `ceiling`.
    pub(crate) fn to_core(&self, ceiling: u64) -> core::Limit {
        let ceiling = self.algorithm.has_ceiling().then_some(ceiling.max(self.max));
        core::Limit {
            algorithm: self.algorithm,
            max: self.max,
            per: self.per,
            burst: self.burst,
            ceiling,
        }
    }

    /// The same limit with what the patch states.
    pub(crate) fn patched(&self, patch: &LimitPatch) -> Limit {
        Limit {
            max: patch.max.unwrap_or(self.max),
            per: patch.per.or(patch.lease).unwrap_or(self.per),
            burst: patch.burst.or(self.burst),
            cooldown: patch.cooldown.or(self.cooldown),
            ..self.clone()
        }
    }
}

/// What changes of a limit; the rest stays.
///
/// ```
/// use tidegate::LimitPatch;
/// let sixty = LimitPatch::max(60).burst(5);
/// assert_eq!((sixty.max, sixty.burst, sixty.per), (Some(60), Some(5), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimitPatch {
    /// Another `max`; an unwritten burst follows it.
    pub max: Option<u64>,
    /// Another period.
    pub per: Option<Duration>,
    /// Another bucket size.
    pub burst: Option<u64>,
    /// Another lease, of a concurrent limit.
    pub lease: Option<Duration>,
    /// Another cooldown.
    pub cooldown: Option<Duration>,
    /// The algorithm that the limit has: a change that states another is refused.
    pub algorithm: Option<Algorithm>,
    /// The scope that the limit has: a change that states another is refused.
    pub scope: Option<Vec<String>>,
    /// What the limit counts: a change that states another is refused.
    pub counts: Option<Counts>,
}

impl LimitPatch {
    /// What it states, as a policy file has it.
    ///
    /// ```
    /// let patch = tidegate::LimitPatch::max(60).to_value();
    /// assert_eq!(patch, serde_json::json!({"max": 60}));
    /// ```
    pub fn to_value(&self) -> Value {
        let numbers = [("max", self.max), ("burst", self.burst)];
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.into())));
        let periods = [("per", self.per), ("lease", self.lease), ("cooldown", self.cooldown)];
        let period = |(name, period): (&'static str, Option<Duration>)| {
            Some((name, format!("{}ms", period?.as_millis()).into()))
        };
        let all = numbers.chain(periods.into_iter().filter_map(period));
        all.map(|(name, value): (&str, Value)| (name.to_string(), value)).collect()
    }

    /// Only another `max`.
    pub fn max(max: u64) -> LimitPatch {
        LimitPatch { max: Some(max), ..LimitPatch::default() }
    }
    /// With another period.
    #[must_use]
    pub fn per(self, per: impl Into<Option<Duration>>) -> LimitPatch {
        LimitPatch { per: per.into(), ..self }
    }
    /// With another bucket size.
    #[must_use]
    pub fn burst(self, burst: impl Into<Option<u64>>) -> LimitPatch {
        LimitPatch { burst: burst.into(), ..self }
    }
    /// With another lease, of a concurrent limit.
    #[must_use]
    pub fn lease(self, lease: impl Into<Option<Duration>>) -> LimitPatch {
        LimitPatch { lease: lease.into(), ..self }
    }
    /// With another cooldown.
    #[must_use]
    pub fn cooldown(self, cooldown: impl Into<Option<Duration>>) -> LimitPatch {
        LimitPatch { cooldown: cooldown.into(), ..self }
    }

    /// Only what changes, without what must be as it is.
    pub(crate) fn changes(self) -> LimitPatch {
        LimitPatch { algorithm: None, scope: None, counts: None, ..self }
    }
}

/// What changes of a rule's limits, by their names.
///
/// A list of whole limits (from text) changes those of the same name, or, if the rule has one limit
/// and one is given, that one.
///
/// ```
/// let patches: tidegate::LimitPatches = vec![("3/min".to_string(), tidegate::LimitPatch::max(5))];
/// let limiter = tidegate::Limiter::new("3/min").unwrap();
/// limiter.set_default(patches).unwrap();
/// assert_eq!(limiter.hit("alice", 1).unwrap().limit, Some(5));
/// ```
pub type LimitPatches = Vec<(String, LimitPatch)>;

/// Writes a period as shortly as it can be read back: `10s`, `min`, `1500ms`.
pub(crate) fn period_text(period: Duration) -> String {
    let millis = period.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
    let (size, unit) = units
        .into_iter()
        .find(|(size, _)| millis > 0 && millis.is_multiple_of(*size))
        .unwrap_or((1, "ms"));
    match millis / size {
        1 => unit.to_string(),
        count => format!("{count}{unit}"),
    }
}

/// Reads a period: an optional whole number and a unit.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(tidegate::bindings::parse_period("90s").unwrap(), Duration::from_secs(90));
/// assert_eq!(tidegate::bindings::parse_period("hour").unwrap(), Duration::from_secs(3600));
/// ```
///
/// # Errors
/// If it is none, with the reason.
pub fn parse_period(text: &str) -> Result<Duration, Error> {
    period(text).map_err(|message| one("", message))
}

pub(crate) fn one(path: &str, message: impl Into<String>) -> Error {
    Error::policy(vec![Problem { path: path.to_string(), message: message.into() }])
}

pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (count, unit) = text.split_at(digits);
    let unit = unit.strip_prefix(' ').filter(|_| digits > 0).unwrap_or(unit);
    let millis: u64 = match unit {
        "ms" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "" if digits > 0 => return Err(format!("{text:?} has no unit; write {text}s, say")),
        "" => return Err("a period is missing; write 10s or min, say".to_string()),
        other => return Err(format!("{other:?} is not a unit; write ms, s, min, h or d")),
    };
    let count = match count {
        "" => 1,
        count => count.parse::<u64>().map_err(|_| format!("{count} is too long a period"))?,
    };
    let millis = count.checked_mul(millis).filter(|&m| m <= 1 << 50);
    millis.map(Duration::from_millis).ok_or_else(|| format!("{text} is too long a period"))
}

/// What is said of a period given to a concurrent limit, or of a lease given to another.
pub(crate) fn not_its_period(permits: bool) -> &'static str {
    match permits {
        true => "a concurrent limit has a lease instead",
        false => "only a concurrent limit has a lease",
    }
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    let whole = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let plain = text.replace('_', "");
    match plain.parse() {
        _ if text.is_empty() => Err(format!("{what} is missing; {FORMS}")),
        Ok(number) if whole => Ok(number),
        Err(_) if whole && !plain.is_empty() => Err(format!("{what} {text} is too large")),
        _ => Err(format!("{what} {text:?} is not a whole number")),
    }
}

const FORMS: &str = "a limit is MAX/PERIOD [burst N] [bucket | window | counter | fixed], or N \
    concurrent [lease PERIOD]";

impl FromStr for Limit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Limit, Error> {
        parse_limit(text).map_err(|message| one("", format!("{text}: {message}")))
    }
}

/// Reads one limit. What is wrong is said without repeating the text.
pub(crate) fn parse_limit(text: &str) -> Result<Limit, String> {
    parse_stated(text).map(|(limit, _)| limit)
}

/// Reads what a text states of a limit, and its algorithm if the text names one.
fn parse_stated(text: &str) -> Result<(Limit, Option<Algorithm>), String> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next().ok_or_else(|| format!("nothing is written here; {FORMS}"))?;
    let rest: Vec<&str> = words.collect();
    if let ["concurrent", rest @ ..] = &*rest {
        return Ok((parse_concurrent(first, rest)?, Some(Algorithm::Concurrent)));
    }
    let (max, per) = first.split_once('/').ok_or_else(|| format!("there is no \"/\"; {FORMS}"))?;
    let (max, per) = (number(max, "max")?, period(per)?);
    let mut limit = Limit { name: first.to_string(), ..Limit::bucket(max, per) };
    let (mut words, mut algorithm) = (rest.into_iter(), None);
    while let Some(word) = words.next() {
        match (word, parse_algorithm(word)) {
            ("burst", _) if limit.burst.is_none() => {
                let size = words.next().ok_or("burst needs a number after it")?;
                limit.burst = Some(number(size, "burst")?);
            }
            ("lease", _) => return Err(not_its_period(false).to_string()),
            (_, Some(Algorithm::Concurrent)) => {
                return Err(format!("{word:?} can't have a period; {FORMS}"));
            }
            (_, Some(other)) if algorithm.is_none() => algorithm = Some(other),
            _ => return Err(unexpected(word, &["burst", "window", "counter", "fixed", "bucket"])),
        }
    }
    limit.algorithm = algorithm.unwrap_or(Algorithm::Bucket);
    Ok((limit, algorithm))
}

/// Reads what a text changes of a limit: its parameters.
pub(crate) fn parse_patch(text: &str) -> Result<LimitPatch, String> {
    let (limit, algorithm) = parse_stated(text)?;
    let (per, lease) = match limit.algorithm.has_lease() {
        true => (None, Some(limit.per)),
        false => (Some(limit.per), None),
    };
    let (max, burst) = (Some(limit.max), limit.burst);
    Ok(LimitPatch { max, per, burst, lease, algorithm, ..LimitPatch::default() })
}

fn unexpected(word: &str, known: &[&str]) -> String {
    match nearest(word, known).filter(|known| *known != word) {
        Some(near) => format!("{word:?} is not expected here; did you mean {near}?"),
        None => format!("{word:?} is not expected here; {FORMS}"),
    }
}

fn parse_concurrent(count: &str, rest: &[&str]) -> Result<Limit, String> {
    if let Some((count, _)) = count.split_once('/') {
        return Err(format!("a concurrent limit has no period; write {count} concurrent"));
    }
    let limit = Limit {
        name: count.to_string(),
        ..Limit::concurrent(number(count, "the number of permits")?)
    };
    match rest {
        [] => Ok(limit),
        ["lease", lease] => Ok(limit.lease(period(lease)?)),
        ["lease"] => Err("lease needs a period after it".to_string()),
        [word, ..] => Err(unexpected(word, &["lease"])),
    }
}

pub(crate) const ALGORITHMS: [(&str, Algorithm); 5] = [
    ("bucket", Algorithm::Bucket),
    ("window", Algorithm::Window),
    ("counter", Algorithm::Counter),
    ("fixed", Algorithm::Fixed),
    ("concurrent", Algorithm::Concurrent),
];

pub(crate) const COUNTS: [(&str, Counts); 2] = [("cost", Counts::Cost), ("hits", Counts::Hits)];

pub(crate) fn counts_name(counts: Counts) -> &'static str {
    match counts {
        Counts::Cost => "cost",
        Counts::Hits => "hits",
    }
}

pub(crate) fn parse_algorithm(word: &str) -> Option<Algorithm> {
    ALGORITHMS.iter().find(|(name, _)| *name == word).map(|(_, algorithm)| *algorithm)
}

pub(crate) fn algorithm_name(algorithm: Algorithm) -> &'static str {
    ALGORITHMS.iter().find(|(_, a)| *a == algorithm).map_or("bucket", |(name, _)| name)
}

/// Whether a name is one that a limit without a name gets.
pub(crate) fn is_label(name: &str) -> bool {
    let digits = || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    !name.contains(' ') && (parse_limit(name).is_ok() || digits())
}

/// Reads limits that are separated by commas, telling of each that is wrong.
pub(crate) fn parse_limits(text: &str) -> Result<Vec<Limit>, Vec<String>> {
    let (mut limits, mut wrong) = (Vec::new(), Vec::new());
    for one in text.split(',').map(str::trim) {
        match parse_limit(one) {
            Ok(limit) => limits.push(limit),
            Err(message) if one.is_empty() => wrong.push(message),
            Err(message) => wrong.push(format!("{one}: {message}")),
        }
    }
    if wrong.is_empty() { Ok(limits) } else { Err(wrong) }
}

/// Something that limits can be made of: one text (commas separate several), a list of texts, or
/// limits that are built.
///
/// ```
/// use tidegate::IntoLimits;
/// let listed = ["5/10s window", "20/min"].into_limits().unwrap();
/// assert_eq!("5/10s window, 20/min".into_limits().unwrap(), listed);
/// ```
pub trait IntoLimits {
    /// The limits, or what is wrong with them.
    ///
    /// # Errors
    /// For each limit that can't be read.
    fn into_limits(self) -> Result<Vec<Limit>, Error>;
}

fn read(texts: &[&str]) -> Result<Vec<Limit>, Error> {
    let (mut limits, mut problems) = (Vec::new(), Vec::new());
    for text in texts {
        match parse_limits(text) {
            Ok(more) => limits.extend(more),
            Err(wrong) => problems.extend(
                wrong.into_iter().map(|message| Problem { path: "limits".to_string(), message }),
            ),
        }
    }
    if problems.is_empty() { Ok(limits) } else { Err(Error::policy(problems)) }
}

impl IntoLimits for &str {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        read(&[self])
    }
}
impl IntoLimits for &String {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        read(&[self])
    }
}
impl IntoLimits for &[&str] {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        read(self)
    }
}
impl<const N: usize> IntoLimits for [&str; N] {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        read(&self)
    }
}
impl IntoLimits for &[String] {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        read(&self.iter().map(String::as_str).collect::<Vec<_>>())
    }
}
impl IntoLimits for Limit {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        Ok(vec![self])
    }
}
impl IntoLimits for Vec<Limit> {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        Ok(self)
    }
}
impl<const N: usize> IntoLimits for [Limit; N] {
    fn into_limits(self) -> Result<Vec<Limit>, Error> {
        Ok(self.into())
    }
}

impl fmt::Display for Limit {
    /// The text form, with the name left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.algorithm.has_lease() {
            return write!(f, "{} concurrent lease {}", self.max, period_text(self.per));
        }
        write!(f, "{}/{}", self.max, period_text(self.per))?;
        if let Some(burst) = self.burst {
            write!(f, " burst {burst}")?;
        }
        match self.algorithm {
            Algorithm::Bucket => Ok(()),
            other => write!(f, " {}", algorithm_name(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_of_the_contract() {
        let seconds = Duration::from_secs;
        let read = |text: &str| parse_limits(text).unwrap();
        assert_eq!(
            read("20/min"),
            [Limit { name: "20/min".into(), ..Limit::bucket(20, seconds(60)) }]
        );
        assert_eq!(read("100/s burst 20")[0].burst, Some(20));
        assert_eq!(read("200/h window")[0].algorithm, Algorithm::Window);
        let two = read("5/10s window, 20/min");
        assert_eq!((two[0].name(), two[1].name()), ("5/10s", "20/min"));
        assert_eq!(read("2000000/min counter")[0].max, 2_000_000);
        let permits = read("100 concurrent lease 30s");
        assert_eq!((permits[0].max, permits[0].per, permits[0].name()), (100, seconds(30), "100"));
        for (text, ms) in [
            ("250ms", 250),
            ("2 hours", 7_200_000),
            ("days", 86_400_000),
            ("3m", 180_000),
            ("hr", 3_600_000),
        ] {
            assert_eq!(period(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
    }

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        for text in
            ["20/min", "100/s burst 20", "5/10s window", "7/1500ms fixed", "3 concurrent lease 30s"]
        {
            assert_eq!(parse_limit(text).unwrap().to_string(), text);
        }
    }
}
