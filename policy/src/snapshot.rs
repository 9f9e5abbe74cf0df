//! A rule as it stands at one moment: its policy, what was changed at run time, and all numbers that
//! follow. Hits read it without a lock; a change makes a new one.

pub(crate) mod source;

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::notes::Spent;
use tidegate_core::{Algorithm, Engine, Hash, OnFull, Once};

use crate::compiled::interned::Interned;
use crate::compiled::labels::RuleLabels;
use crate::compiled::matching::{Matcher, Subject, closest};
use crate::compiled::plan::{MOST_GROUPS, Plan};
use crate::compiled::variant::{Effective, Variant};
use crate::config::limit::{Counts, LimitPatches};
use crate::config::policy::{Match, Mode, RuleConfig};
use crate::decision::Reason;
use crate::error::{Code, Error, Problem};
use crate::key::{Call, MOST_PARTS};
use crate::store::runtime::{Note, Runtime, Target, Timed};
use crate::store::tables::{Tables, is_unspent};
use crate::time::Day;

/// A key's row in each group; groups that the rule does not have are left at 0.
pub(crate) type Hashes = [Option<Hash>; MOST_GROUPS];

/// Which layers of change apply to a call: 0 for none, else one more than the place in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layers {
    when: usize,
    by_match: usize,
    by_key: usize,
}

/// How one attribute is turned into another, ready for use.
#[derive(Debug)]
struct Classes {
    from: String,
    to: String,
    map: HashMap<String, String>,
    default: String,
    /// Whether `to` is the last part of the key.
    is_part: bool,
}

/// An override for one key.
#[derive(Debug)]
struct ForKey {
    parts: Vec<Vec<u8>>,
    layer: usize,
}

/// A key that was blocked by hand.
#[derive(Debug)]
struct Blocked {
    parts: Vec<Vec<u8>>,
    note: Note,
}

/// A rule at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) config: Arc<RuleConfig>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) labels: Arc<RuleLabels>,
    pub(crate) generation: u64,
    /// Nothing is served any more.
    pub(crate) closed: bool,
    /// Where run-time changes end by themselves, for which readings of the clock these are in force.
    timed: Option<Timed>,
    /// A hit of 1 needs nothing but the engine's own answer.
    pub(crate) plain: bool,
    /// And it has one limit, which counts costs.
    pub(crate) lone: bool,
    /// Whether it has a concurrent limit.
    pub(crate) concurrent: bool,
    /// Whether it has more than one limit.
    pub(crate) several: bool,
    classes: Option<Classes>,
    default: LimitPatches,
    whens: Vec<Matcher>,
    pub(crate) exempts: Vec<Matcher>,
    /// The mode that was set at run time.
    mode: Option<Mode>,
    /// Keys that were blocked, by their hash.
    blocked: HashMap<u64, Vec<Blocked>>,
    by_match: Vec<(Matcher, LimitPatches)>,
    by_key: HashMap<u64, Vec<ForKey>>,
    /// The distinct changes of `by_key`.
    key_layers: Vec<LimitPatches>,
    /// The numbers of all layers that were met: for each of `key_layers`, and none of them, a row.
    variants: Box<[Once<Row>]>,
    /// The rule's own numbers, those of no layer.
    pub(crate) base: Interned,
    /// Why the run-time default is not applied, if this policy can't have it.
    pub(crate) refused_default: Vec<Problem>,
}

/// The numbers for each of `by_match` and none of them, and for each entry of `when` and none of them.
type Row = Box<[Once<Interned>]>;

/// The numbers that a call is judged by: the rule's, or some of its own.
pub(crate) enum VariantRef<'a> {
    Known(&'a Interned),
    Own(Interned),
}

impl std::ops::Deref for VariantRef<'_> {
    type Target = Interned;
    fn deref(&self) -> &Interned {
        match self {
            VariantRef::Known(variant) => variant,
            VariantRef::Own(variant) => variant,
        }
    }
}

fn own_plan(config: &RuleConfig, plan: &Plan) -> Plan {
    Plan {
        names: config.limits.iter().map(|limit| limit.name.clone()).collect(),
        labelled: config.limits.iter().map(|limit| limit.labelled).collect(),
        ..plan.clone()
    }
}

/// Changes as a store has them, with this plan's labels in place of positions.
fn by_labels<'r>(runtime: &'r Runtime, plan: &Plan) -> Cow<'r, Runtime> {
    let labelled = (0..plan.names.len()).filter(|&index| plan.labelled[index]);
    let stored: Vec<_> = labelled.map(|i| (plan.stored_name(i), &plan.names[i])).collect();
    if stored.is_empty() || runtime.overrides.is_empty() && runtime.default.what.is_empty() {
        return Cow::Borrowed(runtime);
    }
    Cow::Owned(runtime.renamed(|name| {
        stored.iter().find(|(known, _)| known == name).map(|(_, label)| label.to_string())
    }))
}

/// What a hit needs to know of the call.
pub(crate) struct Resolved<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) variant: VariantRef<'a>,
    /// `classify` had to use its default.
    pub(crate) defaulted: bool,
}

impl Snapshot {
    /// The rule as its policy and run-time changes have it. Changes that the policy does not know (any
    /// more) are left out.
    pub(crate) fn new(
        config: Arc<RuleConfig>,
        labels: Arc<RuleLabels>,
        tables: Arc<Tables>,
    ) -> Result<Snapshot, Error> {
        let (runtime, generation) = tables.runtime();
        let (runtime, timed) = tables.standing(&runtime);
        let runtime = by_labels(&runtime, &own_plan(&config, &tables.plan));
        let snapshot = Snapshot::build(config, labels, tables, &runtime)?;
        // Others are introduced when they are first compiled.
        snapshot.tables.introduce_limits(&snapshot.base);
        let whens = (1..=snapshot.whens.len()).map(|when| Layers { when, ..Layers::default() });
        whens.for_each(|layers| snapshot.tables.introduce_limits(snapshot.variant(layers)));
        Ok(Snapshot { generation, timed, ..snapshot })
    }

    /// The rule as it would be with these changes, as the store has them.
    pub(crate) fn with_runtime(&self, runtime: &Runtime) -> Result<Snapshot, Error> {
        let runtime = by_labels(runtime, &self.own_plan());
        Snapshot::build(self.config.clone(), self.labels.clone(), self.tables.clone(), &runtime)
    }

    /// The plan with the names that this policy has for its limits. Those who made the tables, or an
    /// earlier version of the policy, may have had other labels.
    pub(crate) fn own_plan(&self) -> Plan {
        own_plan(&self.config, &self.tables.plan)
    }

    /// What was changed at run time and stands, by the names of this policy.
    pub(crate) fn changes(&self) -> Runtime {
        let (runtime, _) = self.tables.standing(&self.tables.newest_runtime());
        by_labels(&runtime, &self.own_plan()).into_owned()
    }

    /// A default that this policy can't have, such as another version's, is left out.
    fn build(
        config: Arc<RuleConfig>,
        labels: Arc<RuleLabels>,
        tables: Arc<Tables>,
        runtime: &Runtime,
    ) -> Result<Snapshot, Error> {
        let build = |default: &LimitPatches| {
            Snapshot::with_default(config.clone(), labels.clone(), tables.clone(), runtime, default)
        };
        match build(&runtime.default.what) {
            Err(refused_default) if !runtime.default.what.is_empty() => {
                let snapshot = build(&LimitPatches::new()).map_err(Error::policy)?;
                Ok(Snapshot { refused_default, ..snapshot })
            }
            built => built.map_err(Error::policy),
        }
    }

    fn with_default(
        config: Arc<RuleConfig>,
        labels: Arc<RuleLabels>,
        tables: Arc<Tables>,
        runtime: &Runtime,
        default: &LimitPatches,
    ) -> Result<Snapshot, Vec<Problem>> {
        let whens =
            config.when.iter().filter_map(|when| Matcher::new(&when.matches, &config.key).ok());
        let exempts = runtime.exempts(&config.exempt);
        let exempts = exempts.iter().filter_map(|m| Matcher::new(m, &config.key).ok());
        let mode = runtime.mode.as_ref().map(|mode| mode.what);
        let effective = Effective::of(&config).patched(default).in_mode(mode);
        let base = Variant::new(effective, &tables.plan, &labels)?;
        // What is changed at run time comes and goes.
        let as_stated = default.is_empty() && mode.is_none();
        let intern = if as_stated { Interned::kept } else { Interned::own };
        let base = intern(base);
        // All numbers of a rule go by the names of its own.
        let labels = base.labels.clone();
        let mut snapshot = Snapshot {
            base,
            classes: classes(&config),
            whens: whens.collect(),
            exempts: exempts.collect(),
            default: default.clone(),
            mode,
            blocked: HashMap::new(),
            timed: None,
            by_match: Vec::new(),
            by_key: HashMap::new(),
            key_layers: Vec::new(),
            variants: Box::default(),
            closed: false,
            plain: false,
            lone: false,
            several: config.limits.len() > 1,
            concurrent: config.limits.iter().any(|l| l.algorithm == Algorithm::Concurrent),
            config,
            tables,
            labels,
            generation: 0,
            refused_default: Vec::new(),
        };
        snapshot.add_overrides(runtime);
        snapshot.add_blocks(runtime);
        snapshot.variants = (0..=snapshot.key_layers.len()).map(|_| Once::new()).collect();
        for when in 1..=snapshot.whens.len() {
            let layers = Layers { when, ..Layers::default() };
            snapshot.slot(layers).set(intern(snapshot.compile(layers)?));
        }
        snapshot.plain = snapshot.is_plain();
        let by_cost = snapshot.plan().counts(0) == Counts::Cost;
        snapshot.lone = snapshot.plain && !snapshot.several && by_cost;
        Ok(snapshot)
    }

    fn add_overrides(&mut self, runtime: &Runtime) {
        let mut known: HashMap<&LimitPatches, usize> = HashMap::new();
        for (target, patches) in runtime.overrides.iter().map(|one| &one.what) {
            match target {
                Target::Match(matches) => {
                    let matcher = Matcher::new(matches, &self.config.key).ok();
                    self.by_match.extend(matcher.map(|matcher| (matcher, patches.clone())));
                }
                Target::Key(parts) => {
                    let layer = *known.entry(patches).or_insert_with(|| {
                        self.key_layers.push(patches.clone());
                        self.key_layers.len()
                    });
                    let hash = self.hash_key(parts.iter().map(Vec::as_slice));
                    let for_key = ForKey { parts: parts.clone(), layer };
                    self.by_key.entry(hash).or_default().push(for_key);
                }
            }
        }
    }

    fn add_blocks(&mut self, runtime: &Runtime) {
        for block in &runtime.blocks {
            let hash = self.hash_key(block.what.iter().map(Vec::as_slice));
            let blocked = Blocked { parts: block.what.clone(), note: block.note.clone() };
            self.blocked.entry(hash).or_default().push(blocked);
        }
    }

    /// What is noted of a key's block, if it is blocked.
    #[inline]
    pub(crate) fn block_of(&self, subject: &Subject<'_>, now: u64) -> Option<&Note> {
        if self.blocked.is_empty() { None } else { self.find_block(subject, now) }
    }

    #[cold]
    fn find_block(&self, subject: &Subject<'_>, now: u64) -> Option<&Note> {
        let parts = subject.parts();
        let all = self.blocked.get(&self.hash_key(parts.iter().copied()))?;
        let same = |one: &&Blocked| one.parts.iter().map(Vec::as_slice).eq(parts.iter().copied());
        all.iter().find(same).map(|one| &one.note).filter(|note| !note.is_over(now))
    }

    /// The same rule, closed.
    pub(crate) fn closed(&self) -> Result<Snapshot, Error> {
        let next = Snapshot::new(self.config.clone(), self.labels.clone(), self.tables.clone())?;
        Ok(Snapshot { closed: true, plain: false, lone: false, ..next })
    }

    /// Whether nothing was changed at run time since it was built, nor has ended, nor the limiter was closed.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.generation == self.tables.generation() && !self.closed && self.is_in_time()
    }

    /// Whether none of its changes has ended, nor is ahead of the clock.
    #[inline]
    pub(crate) fn is_in_time(&self) -> bool {
        self.timed.is_none_or(|timed| timed.holds(self.tables.clock().now()))
    }

    fn is_plain(&self) -> bool {
        let base = &self.base;
        self.whens.is_empty()
            && self.exempts.is_empty()
            && self.by_match.is_empty()
            && self.by_key.is_empty()
            && self.blocked.is_empty()
            && self.default.is_empty()
            && self.classes.is_none()
            && self.config.key.len() == 1
            && self.config.budget.is_none()
            && !self.concurrent
            && !base.has_penalties()
            && base.effective.mode == Mode::Enforce
            && self.tables.engines.len() == 1
            && self.plan().is_whole(&self.plan().groups[0].scope)
            && *self.tables.engines[0].limits() == base.groups[0]
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.tables.plan
    }

    /// Where the numbers of these layers are kept. A row is made when the first of it is asked for: most keys
    /// that have an override are met by few of the others.
    fn slot(&self, layers: Layers) -> &Once<Interned> {
        let Layers { when, by_match, by_key } = layers;
        let (columns, rows) = (1 + self.whens.len(), 1 + self.by_match.len());
        let row = || (0..columns * rows).map(|_| Once::new()).collect();
        &self.variants[by_key].get_or_make(row)[by_match * columns + when]
    }

    /// The numbers of these layers, compiled when they are first asked for.
    #[inline]
    fn variant(&self, layers: Layers) -> &Interned {
        match layers == Layers::default() {
            true => &self.base,
            false => self.variant_of(layers),
        }
    }

    fn variant_of(&self, layers: Layers) -> &Interned {
        let slot = self.slot(layers);
        if let Some(variant) = slot.get() {
            return variant;
        }
        match self.compile(layers) {
            Ok(variant) => {
                self.tables.introduce_limits(&variant);
                slot.set(Interned::own(variant))
            }
            // An override that the policy has no room for, such as another version's.
            Err(_) if layers.by_key > 0 => {
                slot.set(self.variant(Layers { by_key: 0, ..layers }).clone())
            }
            Err(_) => slot.set(self.variant(Layers { by_match: 0, ..layers }).clone()),
        }
    }

    /// The policy's numbers, changed by the run-time default and one entry of `when`.
    fn effective(&self, when: usize) -> Effective {
        let effective = Effective::of(&self.config).patched(&self.default);
        let effective = match when.checked_sub(1) {
            Some(when) => effective.changed(&self.config.when[when]),
            None => effective,
        };
        effective.in_mode(self.mode)
    }

    fn compile(&self, layers: Layers) -> Result<Variant, Vec<Problem>> {
        let mut effective = self.effective(layers.when);
        if let Some(by_match) = layers.by_match.checked_sub(1) {
            effective = effective.patched(&self.by_match[by_match].1);
        }
        if let Some(by_key) = layers.by_key.checked_sub(1) {
            effective = effective.patched(&self.key_layers[by_key]);
        }
        Variant::new(effective, self.plan(), &self.labels)
    }

    /// Which of the changes this policy can't apply, and why: the rest of them are in force.
    pub(crate) fn ignored(&self, runtime: &Runtime) -> Vec<Problem> {
        let (plan, key) = (self.plan(), &self.config.key);
        let mut ignored =
            crate::compiled::validate::check_patches("default", &runtime.default.what, plan, key);
        ignored.extend(self.refused_default.iter().map(|why| why.within("default")));
        for (index, one) in runtime.overrides.iter().enumerate() {
            let (target, limits) = &one.what;
            let path = format!("overrides[{index}]");
            let wrong = self.check_target(target).map(drop).err().unwrap_or_default();
            ignored.extend(wrong.iter().map(|why| why.within(&path)));
            let unknown = crate::compiled::validate::check_patches(&path, limits, plan, key);
            let compile = |when| {
                let effective = self.effective(when).patched(limits);
                Variant::new(effective, plan, &self.labels).err()
            };
            let refused = || (0..=self.whens.len()).find_map(compile).unwrap_or_default();
            match unknown.is_empty() {
                true => ignored.extend(refused().iter().map(|why| why.within(&path))),
                false => ignored.extend(unknown),
            }
        }
        for (index, exempt) in runtime.exempts(&self.config.exempt).iter().enumerate() {
            let wrong = self.check_match(exempt).err().unwrap_or_default();
            ignored.extend(wrong.iter().map(|why| why.within(&format!("exempts[{index}]"))));
        }
        for (index, block) in runtime.blocks.iter().enumerate() {
            let wrong = self.check_key(&block.what, "a block").err();
            ignored.extend(wrong.map(|why| why.within(&format!("blocks[{index}]"))));
        }
        ignored.extend(runtime.unread.iter().map(|(field, value)| {
            Problem::new(*field, format!("{value} can't be read by this version"))
        }));
        ignored
    }

    /// Whether a key has the rule's parts, and a match values that can be had.
    pub(crate) fn check_target(&self, target: &Target) -> Result<(), Vec<Problem>> {
        match target {
            Target::Match(matches) => self.check_match(matches),
            Target::Key(parts) => self.check_key(parts, "an override").map_err(|why| vec![why]),
        }
    }

    /// Whether a key has the rule's parts.
    pub(crate) fn check_key(&self, parts: &[Vec<u8>], what: &str) -> Result<(), Problem> {
        if parts.len() == self.plan().parts {
            return Ok(());
        }
        let names = self.config.key.join(", ");
        let message =
            format!("{what} is for all parts of a key [{names}], not for {}", parts.len());
        Err(Problem::new("", message))
    }

    pub(crate) fn check_match(&self, matches: &crate::Match) -> Result<(), Vec<Problem>> {
        let problem = |(field, message): (String, String)| Problem::new(field, message);
        Matcher::new(matches, &self.config.key)
            .map(drop)
            .map_err(|wrong| wrong.into_iter().map(problem).collect())
    }

    /// Compiles everything that this target's changes may come to. For a look before they are made.
    pub(crate) fn check_override(&self, target: &Target) -> Result<bool, Vec<Problem>> {
        let (mut by_match, mut by_key) = (0..=self.by_match.len(), 0..=self.key_layers.len());
        match target {
            Target::Key(parts) => {
                let layer = self.layer_of(parts.iter().map(Vec::as_slice));
                by_key = layer..=layer;
            }
            Target::Match(matches) => {
                let matcher = Matcher::new(matches, &self.config.key).ok();
                let at =
                    self.by_match.iter().position(|(other, _)| Some(other) == matcher.as_ref());
                let layer = at.map_or(0, |at| at + 1);
                by_match = layer..=layer;
            }
        }
        let mut penalties = false;
        for by_key in by_key {
            for by_match in by_match.clone() {
                for when in 0..=self.whens.len() {
                    penalties |= self.compile(Layers { when, by_match, by_key })?.has_penalties();
                }
            }
        }
        Ok(penalties)
    }

    /// The key of a call that needs nothing but the engine's own answer.
    #[inline]
    pub(crate) fn plain_key<'a>(&self, call: &'a Call<'_>) -> Option<&'a [u8]> {
        call.key.single().filter(|_| self.plain && call.max.is_none())
    }

    /// A call as the rule looks at it.
    #[inline(always)]
    pub(crate) fn subject<'a>(&'a self, call: &'a Call<'_>) -> Result<(Subject<'a>, bool), Error> {
        let wanted =
            self.plan().parts - usize::from(self.classes.as_ref().is_some_and(|c| c.is_part));
        if call.key.len() != wanted {
            return Err(self.wrong_key(call.key.len(), wanted));
        }
        let mut subject = Subject {
            parts: std::array::from_fn::<&[u8], MOST_PARTS, _>(|i| match i < wanted {
                true => call.key.part(i),
                false => &[],
            }),
            len: wanted,
            attributes: call.attributes,
            classified: None,
        };
        let Some(classes) = &self.classes else {
            return Ok((subject, false));
        };
        let known = subject.attribute(&classes.from).and_then(|value| classes.map.get(value));
        let class = known.unwrap_or(&classes.default);
        if classes.is_part {
            subject.parts[wanted] = class.as_bytes();
            subject.len += 1;
        } else {
            subject.classified = Some((&classes.to, class));
        }
        Ok((subject, known.is_none()))
    }

    #[cold]
    fn wrong_key(&self, got: usize, wanted: usize) -> Error {
        let parts = self.config.key[..wanted].join(", ");
        let made = match self.config.key.get(wanted) {
            Some(part) => format!("; classify makes {part:?}"),
            None => String::new(),
        };
        let message = format!(
            "rule {:?} has keys of {wanted} {} [{parts}], not of {got}{made}",
            self.labels.rule,
            if wanted == 1 { "part" } else { "parts" },
        );
        Error::new(Code::Key, message)
    }

    #[inline(always)]
    fn layers(&self, subject: &Subject<'_>) -> Layers {
        let after = |place: Option<usize>| place.map_or(0, |place| place + 1);
        Layers {
            when: after(closest(self.whens.iter(), subject)),
            by_match: after(closest(self.by_match.iter().map(|(matcher, _)| matcher), subject)),
            by_key: match self.by_key.is_empty() {
                true => 0,
                false => self.layer_of(subject.parts().iter().copied()),
            },
        }
    }

    /// The layers that a call is judged by, without those that the policy has no room for any more.
    pub(crate) fn layers_in_force(&self, subject: &Subject<'_>) -> Layers {
        let mut layers = self.layers(subject);
        for without in
            [|l: Layers| Layers { by_key: 0, ..l }, |l: Layers| Layers { by_match: 0, ..l }]
        {
            if self.compile(layers).is_err() {
                layers = without(layers);
            }
        }
        layers
    }

    /// The exemptions that the snapshot goes by, in their order.
    pub(crate) fn exempts_in_force(&self) -> Vec<Match> {
        let all = self.changes().exempts(&self.config.exempt);
        all.into_iter().filter(|one| Matcher::new(one, &self.config.key).is_ok()).collect()
    }

    /// The attributes that its hits may read, each once.
    pub(crate) fn attributes(&self) -> BTreeSet<&str> {
        let by_match = self.by_match.iter().map(|(matcher, _)| matcher);
        let matchers = self.whens.iter().chain(&self.exempts).chain(by_match);
        let classified = self.classes.iter().map(|classes| classes.from.as_str());
        matchers.flat_map(Matcher::attributes).chain(classified).collect()
    }

    /// Which exemption a call has.
    pub(crate) fn exemption(&self, subject: &Subject<'_>) -> Option<usize> {
        self.exempts.iter().position(|matcher| matcher.fit(subject).is_some())
    }

    /// The call, and the numbers that it is judged by.
    #[inline]
    pub(crate) fn resolve<'a>(&'a self, call: &'a Call<'_>) -> Result<Resolved<'a>, Error> {
        let (subject, defaulted) = self.subject(call)?;
        let variant = self.variant(self.layers(&subject));
        let variant = match call.max {
            Some(max) => VariantRef::Own(Interned::own(self.with_max(variant, max)?)),
            None => VariantRef::Known(variant),
        };
        Ok(Resolved { subject, variant, defaulted })
    }

    /// Why a call is allowed and not counted, if it is.
    pub(crate) fn uncounted(&self, resolved: &Resolved<'_>) -> Option<Reason> {
        let exempt = || self.exempts.iter().any(|m| m.fit(&resolved.subject).is_some());
        match resolved.variant.effective.mode {
            Mode::Off => Some(Reason::Off),
            _ => exempt().then_some(Reason::Exempt),
        }
    }

    fn layer_of<'p>(&self, parts: impl Iterator<Item = &'p [u8]> + Clone) -> usize {
        let same = |other: &&ForKey| other.parts.iter().map(Vec::as_slice).eq(parts.clone());
        let for_hash = self.by_key.get(&self.hash_key(parts.clone()));
        for_hash.and_then(|all| all.iter().find(same)).map_or(0, |found| found.layer)
    }

    fn hash_key<'p>(&self, parts: impl Iterator<Item = &'p [u8]>) -> u64 {
        let mut all = [&[] as &[u8]; MOST_PARTS];
        let mut len = 0;
        for part in parts {
            all[len.min(MOST_PARTS - 1)] = part;
            len += 1;
        }
        self.tables.engines[0].hash_parts(&all[..len.min(MOST_PARTS)]).as_u64()
    }

    /// The same numbers with the call's own `max`.
    fn with_max(&self, variant: &Variant, max: u64) -> Result<Variant, Error> {
        let effective = variant.effective.clone().with_max(max).ok_or_else(|| {
            let rule = &self.labels.rule;
            let message = format!("rule {rule:?} has several limits; `max` is for rules with one");
            Error::new(Code::Operation, message)
        })?;
        let error = |problems| {
            let message = Error::policy(problems).to_string();
            Error::new(Code::Range, message)
        };
        let compiled = Variant::new(effective, self.plan(), &self.labels).map_err(error)?;
        self.tables.introduce_limits(&compiled);
        Ok(compiled)
    }

    /// The key's row in each table.
    pub(crate) fn hashes(&self, subject: &Subject<'_>) -> Hashes {
        let mut hashes = [None; MOST_GROUPS];
        for (hash, group) in hashes.iter_mut().zip(&self.plan().groups) {
            *hash = Some(self.hash_scope(subject, &group.scope));
        }
        hashes
    }

    /// All tables of a rule hash alike.
    fn hash_scope(&self, subject: &Subject<'_>, scope: &[usize]) -> Hash {
        if self.plan().is_whole(scope) {
            return self.whole_hash(subject);
        }
        let mut parts = [&[] as &[u8]; MOST_PARTS];
        for (part, &index) in parts.iter_mut().zip(scope) {
            *part = subject.parts[index];
        }
        self.tables.engines[0].hash_parts(&parts[..scope.len()])
    }

    /// The key that penalties are kept for.
    pub(crate) fn penalty_hash(&self, subject: &Subject<'_>) -> Hash {
        self.hash_scope(subject, &self.plan().penalty_scope)
    }

    /// What a key has spent of its budget, or those together that found no place for it.
    pub(crate) fn spent(&self, subject: &Subject<'_>) -> Spent {
        let Some((ledger, budget)) = self.tables.budgets().zip(self.config.budget.as_ref()) else {
            return Spent::default();
        };
        let hash = self.whole_hash(subject);
        // The wall clock is read only where others have spent something in this key's place.
        let today = LazyCell::new(|| Day::today(self.tables.clock(), budget.reset_hour_utc).number);
        let notes = match self.tables.on_full {
            OnFull::Allow => ledger.read(hash),
            _ => ledger.read_or_shared(hash, &|notes| is_unspent(notes, *today)),
        };
        notes.map_or(Spent::default(), |notes| Spent::from_note(notes[0]))
    }

    /// Adds to what a key has spent of its budget on `day`, and says what that has come to. Where no place is left
    /// it shares one, unless keys for which there is none are to be allowed without counting. `today_again` is
    /// asked where something was spent on a later day.
    pub(crate) fn spend(
        &self,
        subject: &Subject<'_>,
        amount: u64,
        day: u64,
        today_again: impl Fn() -> u64,
    ) -> Option<u64> {
        let (ledger, hash) = (self.tables.budgets()?, self.whole_hash(subject));
        let idle = |notes: &[u64; 1]| is_unspent(notes, day);
        let add = |note: u64| {
            let spent = Spent::from_note(note);
            let day = if spent.is_ahead(day) { today_again() } else { day };
            let spent = spent.plus(amount, day);
            (spent.note(), spent.on(day))
        };
        match self.tables.on_full {
            OnFull::Allow => ledger.update(hash, 0, &idle, add),
            _ => ledger.update_or_share(hash, 0, &idle, add),
        }
    }

    /// Stores what was spent on a day that is ahead of the clock as spent on `day`, so that it is
    /// forgotten with it. A note that was changed meanwhile is left alone.
    #[cold]
    pub(crate) fn mend_spent(&self, subject: &Subject<'_>, ahead: Spent, day: u64) {
        let Some(ledger) = self.tables.budgets() else { return };
        let hash = self.whole_hash(subject);
        let mend = |note: u64| match note == ahead.note() {
            true => (ahead.mended(day).note(), ()),
            false => (note, ()),
        };
        let own = ledger.update_known(hash, 0, mend);
        if own.is_none() && self.tables.on_full != OnFull::Allow {
            ledger.update_or_share(hash, 0, &|notes| is_unspent(notes, day), mend);
        }
    }

    /// The key that a budget is kept for.
    pub(crate) fn whole_hash(&self, subject: &Subject<'_>) -> Hash {
        self.tables.engines[0].hash_parts(subject.parts())
    }
}

fn classes(config: &RuleConfig) -> Option<Classes> {
    let stated = config.classify.as_ref()?;
    Some(Classes {
        from: stated.from.clone(),
        to: stated.to.clone(),
        map: stated.map.iter().cloned().collect(),
        default: stated.default.clone(),
        is_part: config.key.last() == Some(&stated.to),
    })
}

/// A rule as it stands, and its own numbers to be handed on with a decision.
#[derive(Clone, Copy)]
pub(crate) struct RuleView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The first of the snapshot's.
    pub(crate) engine: &'a Engine,
    pub(crate) base: &'a Interned,
}
