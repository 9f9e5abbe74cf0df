//! The policy layer again, as simply as it can be written: lists, whole milliseconds, and no
//! thought for speed, memory or threads. It shares no code with the crate.
//!
//! A bucket's numbers are chosen so that one token takes a whole number of milliseconds, and the
//! same number whatever changes; its content is then a whole number of milliseconds of refill.

use std::collections::HashMap;

pub const DAY: u64 = 86_400_000;
/// The parts of a key.
pub const PARTS: [&str; 2] = ["channel", "sender"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bucket,
    Window,
    Fixed,
}

#[derive(Clone, Debug)]
pub struct Limit {
    pub name: String,
    pub kind: Kind,
    pub max: u64,
    pub per: u64,
    pub burst: Option<u64>,
    pub cooldown: Option<u64>,
    /// Which parts it is keyed by.
    pub scope: Vec<usize>,
    /// What one token of a bucket takes.
    pub token: u64,
}

impl Limit {
    fn size(&self) -> u64 {
        match self.kind {
            Kind::Bucket if self.max > 0 => self.burst.unwrap_or(self.max),
            _ => self.max,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Patch {
    pub limit: usize,
    pub max: Option<u64>,
    pub per: Option<u64>,
    pub burst: Option<u64>,
    pub cooldown: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    Silent,
    Once,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Enforce,
    Shadow,
    Off,
}

#[derive(Clone, Debug)]
pub struct Backoff {
    pub steps: Vec<u64>,
    pub quiet: u64,
    pub round: Option<u64>,
    pub enforce: bool,
}

#[derive(Clone, Debug)]
pub struct Budget {
    pub daily: u64,
    pub per_hit: Option<u64>,
    pub reset_hour: u64,
}

/// Fields and the value that each must have.
pub type Match = Vec<(String, String)>;

#[derive(Clone, Debug)]
pub struct When {
    pub matches: Match,
    pub patches: Vec<Patch>,
    pub cooldown: Option<u64>,
    pub notify: Option<Notify>,
    pub mode: Option<Mode>,
}

/// What a rule is judged by: as stated, or as it comes to be for one call.
#[derive(Clone, Debug)]
pub struct Terms {
    pub limits: Vec<Limit>,
    /// In hundredths.
    pub warn_at: Option<u64>,
    pub cooldown: Option<u64>,
    pub backoff: Option<Backoff>,
    /// Violations, and the span.
    pub alert: Option<(u64, u64)>,
    pub notify: Notify,
    pub mode: Mode,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub terms: Terms,
    pub penalty_scope: Vec<usize>,
    pub budget: Option<Budget>,
    pub when: Vec<When>,
    pub exempt: Vec<Match>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub key: [String; 2],
    pub role: Option<String>,
    pub max: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Hit,
    Check,
    Peek,
}

/// A decision. `reset` is none where a limit of 0 leaves open what a full quota is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub allowed: bool,
    pub reason: Option<String>,
    pub would: Option<String>,
    pub limit: Option<u64>,
    pub remaining: Option<u64>,
    pub retry: Option<u64>,
    pub reset: Option<u64>,
    pub warning: bool,
    pub alert: bool,
    pub notify: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    pub spent: u64,
    pub remaining: u64,
    pub over: bool,
    pub over_per_hit: bool,
    pub reset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Used, size, remaining and reset.
    pub limits: Vec<(u64, u64, u64, u64)>,
    pub cooldown_left: u64,
    pub violations: u64,
    pub last_allowed: Option<u64>,
    pub budget: Option<Spending>,
    /// Until when, if it is; none for ever.
    pub blocked: Option<Option<u64>>,
}

/// What one limit says. `wait` is none for never.
#[derive(Clone, Debug)]
struct View {
    used: u64,
    size: u64,
    remaining: u64,
    wait: Option<u64>,
    reset: u64,
}

/// What a key has spent under one limit.
#[derive(Clone, Debug)]
enum State {
    /// Milliseconds of refill that it held, and when: a line that a size cuts off.
    Line(u64, u64),
    /// When, and how much.
    Log(Vec<(u64, u64)>),
    /// Since when, and how much.
    Count(u64, u64),
}

#[derive(Clone, Debug, Default)]
struct Penalty {
    last: Option<u64>,
    count: u64,
    cooling: Option<usize>,
    until: Option<u64>,
    told: bool,
    /// Start and count.
    span: Option<(u64, u64)>,
}

impl Penalty {
    fn cooldown_left(&self, terms: &Terms, now: u64) -> u64 {
        let (Some(limit), Some(last)) = (self.cooling, self.last) else { return 0 };
        (last + terms.cooldown_of(limit)).saturating_sub(now)
    }
    fn enforced_left(&self, terms: &Terms, now: u64) -> u64 {
        let enforced = terms.backoff.as_ref().is_some_and(|b| b.enforce);
        self.until.filter(|_| enforced).unwrap_or(0).saturating_sub(now)
    }
    fn is_recent(&self, terms: &Terms, now: u64) -> bool {
        let quiet = terms.backoff.as_ref().map_or(0, |b| b.quiet);
        self.last.is_some_and(|last| now - last < quiet)
    }
    fn in_span(&self, terms: &Terms, now: u64) -> u64 {
        match (self.span, terms.alert) {
            (Some((start, count)), Some((_, within))) if now - start < within => count,
            _ => 0,
        }
    }
    fn is_told(&self, terms: &Terms, now: u64) -> bool {
        self.told && !(self.cooling.is_some() && self.cooldown_left(terms, now) == 0)
    }
    /// The first denial of an episode?
    fn tell(&mut self, terms: &Terms, now: u64) -> bool {
        match terms.notify {
            Notify::Silent => return false,
            Notify::Always => return true,
            Notify::Once => {}
        }
        let first = !self.is_told(terms, now);
        if first && self.cooldown_left(terms, now) == 0 {
            self.cooling = None;
        }
        self.told = true;
        first
    }
}

impl Terms {
    fn cooldown_of(&self, limit: usize) -> u64 {
        self.limits[limit].cooldown.or(self.cooldown).unwrap_or(0)
    }

    fn patch(&mut self, patches: &[Patch]) {
        for patch in patches {
            let limit = &mut self.limits[patch.limit];
            limit.max = patch.max.unwrap_or(limit.max);
            limit.per = patch.per.unwrap_or(limit.per);
            limit.burst = patch.burst.or(limit.burst);
            limit.cooldown = patch.cooldown.or(limit.cooldown);
        }
    }

    fn shares_log(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.limits[one], &self.limits[other]);
        one.kind == Kind::Window && other.kind == Kind::Window && one.scope == other.scope
    }

    /// The limit in whose place a limit's state is kept.
    fn log_of(&self, limit: usize) -> usize {
        (0..limit).find(|&other| self.shares_log(other, limit)).unwrap_or(limit)
    }

    fn longest_per(&self, limit: usize) -> u64 {
        let sharing = (0..self.limits.len()).filter(|&o| o == limit || self.shares_log(o, limit));
        sharing.map(|other| self.limits[other].per).max().unwrap()
    }

    /// Whether denials lead to anything that is kept; terms under which they don't leave a key's
    /// penalties alone.
    fn has_penalties(&self) -> bool {
        self.backoff.is_some()
            || self.alert.is_some()
            || self.notify == Notify::Once
            || (0..self.limits.len()).any(|limit| self.cooldown_of(limit) > 0)
    }

    fn has_zero(&self) -> bool {
        self.limits.iter().any(|limit| limit.max == 0)
    }

    fn reset(&self, views: &[View]) -> Option<u64> {
        let longest = views.iter().map(|view| view.reset).max().unwrap();
        (!self.has_zero()).then_some(longest)
    }

    /// The limit that holds least.
    fn smallest(&self) -> usize {
        (0..self.limits.len()).min_by_key(|&i| self.limits[i].size()).unwrap()
    }

    fn warns(&self, remaining: u64, size: u64) -> bool {
        self.warn_at.is_some_and(|at| remaining * 100 < (100 - at) * size)
    }
}

impl State {
    fn new(kind: Kind) -> State {
        match kind {
            Kind::Bucket => State::Line(u64::MAX / 2, 0),
            Kind::Window => State::Log(Vec::new()),
            Kind::Fixed => State::Count(0, 0),
        }
    }

    /// Of a bucket: milliseconds of refill that it holds.
    fn content(&self, limit: &Limit, now: u64) -> u64 {
        let State::Line(held, at) = self else { unreachable!() };
        (held + (now - at)).min(limit.size() * limit.token)
    }

    fn within(log: &[(u64, u64)], per: u64, now: u64) -> u64 {
        log.iter().filter(|(at, _)| at + per > now).map(|(_, units)| units).sum()
    }

    fn view(&self, limit: &Limit, cost: u64, now: u64) -> View {
        let size = limit.size();
        if limit.max == 0 {
            return View { used: 0, size: 0, remaining: 0, wait: None, reset: 0 };
        }
        let (used, remaining, wait, reset) = match self {
            State::Line(..) => {
                let (held, whole) = (self.content(limit, now), size * limit.token);
                let remaining = held / limit.token;
                let wait = (cost * limit.token).saturating_sub(held);
                (size - remaining, remaining, wait, whole - held)
            }
            State::Log(log) => {
                let used = State::within(log, limit.per, now);
                let fits = |at: &u64| State::within(log, limit.per, *at) + cost <= limit.max;
                let leaving = log.iter().map(|(at, _)| at + limit.per).filter(|at| *at > now);
                let wait = leaving.chain([now]).filter(fits).min().unwrap_or(now) - now;
                let live = log.iter().filter(|(_, units)| *units > 0);
                let newest = live.map(|(at, _)| at + limit.per).max().unwrap_or(0);
                (used, limit.max.saturating_sub(used), wait, newest.saturating_sub(now))
            }
            State::Count(start, units) => {
                let open = *units > 0 && start + limit.per > now;
                let used = if open { *units } else { 0 };
                let reset = if open { start + limit.per - now } else { 0 };
                let wait = if used + cost > limit.max { reset } else { 0 };
                (used, limit.max.saturating_sub(used), wait, reset)
            }
        };
        View { used, size, remaining, wait: (cost <= size).then_some(wait), reset }
    }

    fn spend(&mut self, limit: &Limit, cost: u64, now: u64) {
        if cost == 0 {
            return;
        }
        match self {
            State::Line(..) => {
                let left = self.content(limit, now).saturating_sub(cost * limit.token);
                *self = State::Line(left, now);
            }
            State::Log(log) => log.push((now, cost)),
            State::Count(start, units) if *units > 0 && *start + limit.per > now => *units += cost,
            State::Count(start, units) => (*start, *units) = (now, cost),
        }
    }

    fn refund(&mut self, limit: &Limit, cost: u64, now: u64) {
        match self {
            State::Line(held, at) => {
                // Never above full; a line that is above its size is left as it is.
                let (line, whole) = (*held + (now - *at), limit.size() * limit.token);
                let back = (line + cost * limit.token).min(whole);
                *self = State::Line(line.max(back), now);
            }
            State::Log(log) => {
                let mut left = cost;
                for (at, units) in log.iter_mut().rev().filter(|(at, _)| at + limit.per > now) {
                    let _ = at;
                    let back = left.min(*units);
                    (*units, left) = (*units - back, left - back);
                }
            }
            State::Count(start, units) => {
                if *start + limit.per > now {
                    *units = units.saturating_sub(cost);
                }
            }
        }
    }
}

/// A rule at work.
#[derive(Clone, Debug)]
pub struct Reference {
    pub rule: Rule,
    pub now: u64,
    pub wall: u64,
    pub default: Vec<Patch>,
    pub by_match: Vec<(Match, Vec<Patch>)>,
    pub by_key: Vec<([String; 2], Vec<Patch>)>,
    /// The rule's own that were not taken back.
    pub exempts: Vec<Match>,
    pub added: Vec<Match>,
    pub mode: Option<Mode>,
    pub blocks: Vec<[String; 2]>,
    /// When changes end.
    ends: Vec<(Changed, u64)>,
    limits: HashMap<(usize, Vec<String>), State>,
    penalties: HashMap<Vec<String>, Penalty>,
    /// Day and units.
    spent: HashMap<[String; 2], (u64, u64)>,
}

/// What was changed at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    Key([String; 2]),
    Match(Match),
    Default,
    Exempt(Match),
    Mode,
    Block([String; 2]),
}

fn fits(matches: &Match, call: &Call) -> bool {
    matches.iter().all(|(field, value)| match PARTS.iter().position(|part| part == field) {
        Some(part) => call.key[part] == *value,
        None => field == "role" && call.role.as_ref() == Some(value),
    })
}

/// Most fields, then the later.
fn closest<'m>(all: impl Iterator<Item = &'m Match>, call: &Call) -> Option<usize> {
    let fitting = all.enumerate().filter(|(_, matches)| fits(matches, call));
    fitting.max_by_key(|(index, matches)| (matches.len(), *index)).map(|(index, _)| index)
}

fn project(key: &[String; 2], scope: &[usize]) -> Vec<String> {
    scope.iter().map(|&part| key[part].clone()).collect()
}

impl Reference {
    pub fn new(rule: Rule, now: u64, wall: u64) -> Reference {
        Reference {
            exempts: rule.exempt.clone(),
            rule,
            now,
            wall,
            default: Vec::new(),
            by_match: Vec::new(),
            by_key: Vec::new(),
            added: Vec::new(),
            mode: None,
            blocks: Vec::new(),
            ends: Vec::new(),
            limits: HashMap::new(),
            penalties: HashMap::new(),
            spent: HashMap::new(),
        }
    }

    /// Says for how long a change stands that was just made, or that it is taken back.
    pub fn lasts(&mut self, changed: Changed, time: Option<u64>) {
        self.ends.retain(|(other, _)| *other != changed);
        self.ends.extend(time.map(|time| (changed, self.now + time)));
    }

    pub fn step(&mut self, step: u64) {
        (self.now, self.wall) = (self.now + step, self.wall + step);
        let (over, ends) =
            std::mem::take(&mut self.ends).into_iter().partition(|(_, at)| *at <= self.now);
        self.ends = ends;
        let over: Vec<(Changed, u64)> = over;
        for (changed, _) in over {
            match changed {
                Changed::Key(key) => self.by_key.retain(|(other, _)| *other != key),
                Changed::Match(matches) => self.by_match.retain(|(other, _)| *other != matches),
                Changed::Default => self.default.clear(),
                Changed::Exempt(matches) => self.added.retain(|other| *other != matches),
                Changed::Mode => self.mode = None,
                Changed::Block(key) => self.blocks.retain(|other| *other != key),
            }
        }
    }

    /// Whether a change ends within that time, but for blocks: then a call is judged by other
    /// numbers.
    pub fn changes_within(&self, time: u64) -> bool {
        let other = |changed: &Changed| !matches!(changed, Changed::Block(_));
        self.ends.iter().any(|(changed, at)| other(changed) && *at <= self.now + time)
    }

    /// How long the key is blocked, if it is; none for ever.
    pub fn block_left(&self, call: &Call) -> Option<Option<u64>> {
        let block = self.blocks.iter().find(|key| **key == call.key)?;
        let changed = Changed::Block(block.clone());
        let end = self.ends.iter().find(|(other, _)| *other == changed);
        Some(end.map(|(_, at)| at - self.now))
    }

    pub fn terms(&self, call: &Call) -> Terms {
        let mut terms = self.rule.terms.clone();
        terms.patch(&self.default);
        if let Some(when) = closest(self.rule.when.iter().map(|when| &when.matches), call) {
            let when = &self.rule.when[when];
            terms.patch(&when.patches);
            terms.cooldown = when.cooldown.or(terms.cooldown);
            terms.notify = when.notify.unwrap_or(terms.notify);
            terms.mode = when.mode.unwrap_or(terms.mode);
        }
        terms.mode = self.mode.unwrap_or(terms.mode);
        if let Some(index) = closest(self.by_match.iter().map(|(matches, _)| matches), call) {
            terms.patch(&self.by_match[index].1);
        }
        if let Some((_, patches)) = self.by_key.iter().find(|(key, _)| *key == call.key) {
            terms.patch(patches);
        }
        if let Some(max) = call.max {
            terms.limits[0].max = max;
        }
        terms
    }

    pub fn is_exempt(&self, call: &Call) -> bool {
        self.exempts.iter().chain(&self.added).any(|matches| fits(matches, call))
    }

    /// Whether a limit of 0 is in force for the call.
    pub fn is_suspended(&self, call: &Call) -> bool {
        self.terms(call).has_zero()
    }

    /// Windows of one scope have one log.
    fn place(&self, call: &Call, terms: &Terms, limit: usize) -> (usize, Vec<String>) {
        (terms.log_of(limit), project(&call.key, &terms.limits[limit].scope))
    }

    fn views(&self, call: &Call, terms: &Terms, cost: u64) -> Vec<View> {
        let view = |(index, limit): (usize, &Limit)| {
            let new = State::new(limit.kind);
            let state = self.limits.get(&self.place(call, terms, index)).unwrap_or(&new);
            state.view(limit, cost, self.now)
        };
        terms.limits.iter().enumerate().map(view).collect()
    }

    fn each_limit(&mut self, call: &Call, terms: &Terms, act: impl Fn(&mut State, &Limit)) {
        for (index, limit) in terms.limits.iter().enumerate() {
            if terms.log_of(index) != index {
                continue;
            }
            let limit = &Limit { per: terms.longest_per(index), ..limit.clone() };
            let place = self.place(call, terms, index);
            act(self.limits.entry(place).or_insert_with(|| State::new(limit.kind)), limit);
        }
    }

    fn penalty(&self, call: &Call) -> Penalty {
        let place = project(&call.key, &self.rule.penalty_scope);
        self.penalties.get(&place).cloned().unwrap_or_default()
    }

    fn day(&self) -> (u64, u64) {
        let hour = self.rule.budget.as_ref().map_or(0, |budget| budget.reset_hour);
        let since = self.wall + DAY - hour * 3_600_000;
        (since / DAY, DAY - since % DAY)
    }

    fn spent_today(&self, call: &Call) -> u64 {
        let (today, _) = self.day();
        self.spent.get(&call.key).filter(|(day, _)| *day == today).map_or(0, |(_, units)| *units)
    }

    pub fn judge(&mut self, call: &Call, cost: u64, op: Op) -> Answer {
        let terms = self.terms(call);
        let mut answer = Answer {
            allowed: true,
            reason: None,
            would: None,
            limit: None,
            remaining: None,
            retry: Some(0),
            reset: Some(0),
            warning: false,
            alert: false,
            notify: false,
        };
        if terms.mode == Mode::Off || self.is_exempt(call) {
            let reason = if terms.mode == Mode::Off { "off" } else { "exempt" };
            return Answer { reason: Some(reason.into()), ..answer };
        }
        let before = self.views(call, &terms, cost);
        answer.reset = terms.reset(&before);
        if !self.deny(call, &terms, cost, op, &before, &mut answer) {
            return self.allow(call, &terms, cost, op, answer);
        }
        answer.allowed = false;
        if terms.mode == Mode::Shadow {
            answer.would = answer.reason.take();
            (answer.allowed, answer.notify, answer.retry) = (true, false, Some(0));
        }
        answer
    }

    fn allow(
        &mut self,
        call: &Call,
        terms: &Terms,
        cost: u64,
        op: Op,
        mut answer: Answer,
    ) -> Answer {
        let mut after = self.clone();
        let now = self.now;
        after.each_limit(call, terms, |state, limit| state.spend(limit, cost, now));
        let seen = if op == Op::Check { &*self } else { &after };
        let views = seen.views(call, terms, 0);
        let least = (0..views.len()).min_by_key(|&i| views[i].remaining).unwrap();
        answer.limit = Some(views[least].size);
        answer.remaining = Some(views[least].remaining);
        answer.reset = terms.reset(&views);
        answer.warning = views.iter().any(|v| terms.warns(v.remaining, v.size));
        if op == Op::Hit {
            *self = after;
        }
        if op != Op::Peek
            && let Some(penalty) =
                self.penalties.get_mut(&project(&call.key, &self.rule.penalty_scope))
        {
            penalty.told = false;
        }
        answer
    }

    /// Fills in why the call is denied, if it is, and what that leads to.
    fn deny(
        &mut self,
        call: &Call,
        terms: &Terms,
        cost: u64,
        op: Op,
        views: &[View],
        answer: &mut Answer,
    ) -> bool {
        let now = self.now;
        let smallest = terms.smallest();
        let too_costly = !terms.has_zero() && cost > terms.limits[smallest].size();
        let blocked = self.block_left(call);
        if too_costly && blocked.is_none() {
            answer.reason = Some("cost".into());
            answer.limit = Some(views[smallest].size);
            answer.remaining = Some(views[smallest].remaining);
            answer.retry = None;
            answer.notify = op != Op::Peek && terms.notify == Notify::Always;
            return true;
        }
        let mut penalty = self.penalty(call);
        let (cooldown, enforced) =
            (penalty.cooldown_left(terms, now), penalty.enforced_left(terms, now));
        let over = self.rule.budget.as_ref().is_some_and(|b| self.spent_today(call) >= b.daily);
        let own = views.iter().try_fold(0, |longest, view| Some(view.wait?.max(longest)));
        let barred = match (over, cooldown, enforced) {
            _ if blocked.is_some() => Some("blocked"),
            (true, ..) => Some("budget"),
            (_, 0, 0) => None,
            (_, 0, _) => Some("backoff"),
            _ => Some("cooldown"),
        };
        if let Some(reason) = barred {
            let budget = if over { self.day().1 } else { 0 };
            answer.reason = Some(reason.into());
            answer.limit = penalty
                .cooling
                .filter(|_| reason == "cooldown")
                .map(|limit| terms.limits[limit].size());
            answer.remaining = Some(0);
            answer.retry = own.map(|own| own.max(budget).max(cooldown).max(enforced));
            if let Some(left) = blocked {
                let retry = answer.retry.zip(left).filter(|_| !too_costly);
                answer.retry = retry.map(|(retry, left)| retry.max(left));
            }
            answer.notify = op != Op::Peek && penalty.tell(terms, now);
        } else {
            let denying: Vec<usize> =
                (0..views.len()).filter(|&i| views[i].wait != Some(0)).collect();
            if denying.is_empty() {
                return false;
            }
            let long = |i: usize| match views[i].wait {
                Some(wait) => wait.max(terms.cooldown_of(i)),
                // What never allows anything goes before a cost that is too large for another.
                None if views[i].size == 0 => u64::MAX,
                None => u64::MAX - 1,
            };
            // The first of the longest, in declared order.
            let first_of = |by: &dyn Fn(usize) -> u64| {
                let longest = denying.iter().map(|&i| by(i)).max().unwrap();
                denying.iter().copied().find(|&i| by(i) == longest).unwrap()
            };
            let limit = first_of(&long);
            let coolest = first_of(&|i| terms.cooldown_of(i));
            let started = terms.cooldown_of(coolest);
            let count = if penalty.is_recent(terms, now) { penalty.count + 1 } else { 1 };
            let mut wait = own.map(|own| own.max(started));
            if let (Some(backoff), Some(wait)) = (&terms.backoff, &mut wait) {
                let step = backoff.steps[(count as usize).min(backoff.steps.len()) - 1];
                *wait = (*wait).max(step).next_multiple_of(backoff.round.unwrap_or(1));
            }
            answer.reason = Some(terms.limits[limit].name.clone());
            answer.limit = Some(views[limit].size);
            answer.remaining = Some(views[limit].remaining);
            // A look starts nothing, so that there is nothing else to wait for.
            answer.retry = if op == Op::Peek { own } else { wait };
            if op != Op::Peek {
                answer.notify = penalty.tell(terms, now);
                penalty.told = terms.notify == Notify::Once;
                penalty.last = Some(now);
                penalty.count = count;
                penalty.cooling = (started > 0).then_some(coolest);
                penalty.until = wait.map(|wait| now + wait);
                if let Some((violations, _)) = terms.alert {
                    let open = penalty.in_span(terms, now);
                    let start = penalty.span.filter(|_| open > 0).map_or(now, |(start, _)| start);
                    penalty.span = Some((start, open + 1));
                    answer.alert = open + 1 == violations;
                }
            }
        }
        if op != Op::Peek && terms.has_penalties() {
            self.penalties.insert(project(&call.key, &self.rule.penalty_scope), penalty);
        }
        true
    }

    /// Used, size, remaining and reset.
    pub fn record(&mut self, call: &Call, cost: u64) -> (u64, u64, u64, u64) {
        let (terms, now) = (self.terms(call), self.now);
        let counted = terms.mode != Mode::Off && !self.is_exempt(call);
        if counted {
            self.each_limit(call, &terms, |state, limit| state.spend(limit, cost, now));
        }
        let new = |limit: &Limit| State::new(limit.kind).view(limit, 0, now);
        let views = match counted {
            true => self.views(call, &terms, 0),
            false => terms.limits.iter().map(new).collect(),
        };
        let least = views.iter().min_by_key(|view| view.remaining).unwrap();
        let reset = views.iter().map(|view| view.reset).max().unwrap();
        (least.used, least.size, least.remaining, reset)
    }

    pub fn refund(&mut self, call: &Call, cost: u64) {
        let (terms, now) = (self.terms(call), self.now);
        if terms.mode != Mode::Off && !self.is_exempt(call) {
            self.each_limit(call, &terms, |state, limit| state.refund(limit, cost, now));
        }
    }

    pub fn spend(&mut self, call: &Call, amount: u64) -> Spending {
        let counted = self.terms(call).mode != Mode::Off && !self.is_exempt(call);
        if !counted {
            let nothing = Reference { spent: HashMap::new(), ..self.clone() };
            return nothing.spending(call, amount);
        }
        let units = self.spent_today(call) + amount;
        self.spent.insert(call.key.clone(), (self.day().0, units));
        self.spending(call, amount)
    }

    pub fn spending(&self, call: &Call, amount: u64) -> Spending {
        let budget = self.rule.budget.as_ref().unwrap();
        let spent = self.spent_today(call);
        Spending {
            spent,
            remaining: budget.daily.saturating_sub(spent),
            over: spent >= budget.daily,
            over_per_hit: budget.per_hit.is_some_and(|most| amount > most),
            reset: self.day().1,
        }
    }

    pub fn is_limited(&self, call: &Call) -> bool {
        let terms = self.terms(call);
        let counted = terms.mode != Mode::Off && !self.is_exempt(call);
        match terms.backoff {
            _ if self.block_left(call).is_some() => counted,
            Some(_) => counted && self.penalty(call).is_recent(&terms, self.now),
            None => !self.clone().judge(call, 1, Op::Peek).allowed,
        }
    }

    /// Nothing exactly when the key is as new.
    pub fn stats(&self, call: &Call) -> Option<Stats> {
        let (terms, now) = (self.terms(call), self.now);
        let views = self.views(call, &terms, 0);
        let penalty = self.penalty(call);
        let budget = self.rule.budget.as_ref().map(|_| self.spending(call, 0));
        let in_run = if penalty.is_recent(&terms, now) { penalty.count } else { 0 };
        let violations = terms.alert.map_or(in_run, |_| penalty.in_span(&terms, now));
        let cooldown_left = penalty.cooldown_left(&terms, now);
        let is_new = views.iter().all(|view| view.used == 0 && view.reset == 0)
            && cooldown_left == 0
            && penalty.enforced_left(&terms, now) == 0
            && violations + in_run == 0
            && !penalty.is_told(&terms, now)
            && budget.as_ref().is_none_or(|budget| budget.spent == 0)
            && self.block_left(call).is_none();
        let window = |i: &usize| terms.limits[*i].kind == Kind::Window && views[*i].reset > 0;
        let age = |i: usize| terms.limits[i].per - views[i].reset;
        (!is_new).then(|| Stats {
            last_allowed: (0..views.len()).filter(window).map(age).min(),
            limits: views.iter().map(|v| (v.used, v.size, v.remaining, v.reset)).collect(),
            cooldown_left,
            violations,
            budget,
            blocked: self.block_left(call).map(|left| left.map(|left| self.wall + left)),
        })
    }

    pub fn reset(&mut self, call: &Call) {
        let key = call.key.to_vec();
        self.limits.retain(|(_, place), _| *place != key);
        self.penalties.retain(|place, _| *place != key);
        self.spent.remove(&call.key);
        self.blocks.retain(|key| *key != call.key);
        self.lasts(Changed::Block(call.key.clone()), None);
    }
}
