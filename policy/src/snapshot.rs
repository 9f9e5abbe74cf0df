//! A rule as it stands at one moment: its policy, what was changed at run time, and all limits that
//! follow. Hits read it without a lock; a change makes a new one.

mod call;
mod checks;
pub(crate) mod source;
mod spent;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use rapidhash::RapidHashMap;
use tidegate_core::{Engine, Hash, Once};

use crate::compiled::interned::Interned;
use crate::compiled::labels::RuleLabels;
use crate::compiled::matching::{Matcher, Subject};
use crate::compiled::plan::{MOST_GROUPS, Plan};
use crate::compiled::variant::{Effective, Variant};
use crate::config::limit::{Counts, LimitPatches};
use crate::config::policy::{Mode, RuleConfig};
use crate::error::{Error, Problem};
use crate::key::{MOST_PARTS, Parts};
use crate::store::runtime::{Note, Runtime, Target, Timed};
use crate::store::tables::Tables;

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
    map: RapidHashMap<String, String>,
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
    /// Where run-time changes end by themselves, for which readings of the clock these are in
    /// force.
    timed: Option<Timed>,
    /// A hit of 1 needs nothing but the engine's own answer.
    pub(crate) plain: bool,
    /// And it has one limit.
    pub(crate) single: bool,
    /// Which counts costs.
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
    /// The limits of all layers that were met: for each of `key_layers`, and none of them, a row.
    variants: Box<[Once<WhenVariants>]>,
    /// The rule's own limits, those of no layer.
    pub(crate) base: Interned,
    /// Why the run-time default is not applied, if this policy can't have it.
    pub(crate) refused_default: Vec<Problem>,
}

/// The limits for each of `by_match` and none of them, and for each entry of `when` and none of
/// them.
type WhenVariants = Box<[Once<Interned>]>;

/// The limits that a call is judged by: the rule's, or some of its own.
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
    /// The rule as its policy and run-time changes have it. Changes that the policy does not know
    /// (any more) are left out.
    pub(crate) fn new(
        config: Arc<RuleConfig>,
        labels: Arc<RuleLabels>,
        tables: Arc<Tables>,
    ) -> Result<Snapshot, Error> {
        let (runtime, generation) = tables.runtime();
        let (runtime, timed) = tables.in_force(&runtime);
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

    /// The plan with the names that this policy has for its limits. Those who made the tables, or
    /// an earlier version of the policy, may have had other labels.
    pub(crate) fn own_plan(&self) -> Plan {
        own_plan(&self.config, &self.tables.plan)
    }

    /// What was changed at run time and stands, by the names of this policy.
    pub(crate) fn changes(&self) -> Runtime {
        let (runtime, _) = self.tables.in_force(&self.tables.newest_runtime());
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
        // All limits of a rule go by the names of its own.
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
            single: false,
            lone: false,
            several: config.limits.len() > 1,
            concurrent: config.limits.iter().any(|l| l.algorithm.has_lease()),
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
        snapshot.single = snapshot.plain && !snapshot.several;
        snapshot.lone = snapshot.single && by_cost;
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

    /// The same rule, closed.
    pub(crate) fn closed(&self) -> Result<Snapshot, Error> {
        let next = Snapshot::new(self.config.clone(), self.labels.clone(), self.tables.clone())?;
        Ok(Snapshot { closed: true, plain: false, single: false, lone: false, ..next })
    }

    /// Whether nothing was changed at run time since it was built, nor has ended, nor the limiter
    /// was closed.
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

    /// Where the limits of these layers are kept. A row is made when the first of it is asked for:
    /// most keys that have an override are met by few of the others.
    fn slot(&self, layers: Layers) -> &Once<Interned> {
        let Layers { when, by_match, by_key } = layers;
        let (columns, rows) = (1 + self.whens.len(), 1 + self.by_match.len());
        let row = || (0..columns * rows).map(|_| Once::new()).collect();
        &self.variants[by_key].get_or_make(row)[by_match * columns + when]
    }

    /// The limits of these layers, compiled when they are first asked for.
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

    /// The policy's limits, changed by the run-time default and one entry of `when`.
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

    fn hash_key<'p>(&self, parts: impl Iterator<Item = &'p [u8]>) -> u64 {
        let mut all = [&[] as &[u8]; MOST_PARTS];
        let mut len = 0;
        for part in parts {
            all[len.min(MOST_PARTS - 1)] = part;
            len += 1;
        }
        self.hash_parts(&all[..len.min(MOST_PARTS)]).as_u64()
    }

    /// The key's row in each table.
    pub(crate) fn hashes(&self, subject: &Subject<'_>) -> Hashes {
        self.hashes_by(self.whole_hash(subject), subject)
    }

    /// The same for a key whose hash is known.
    pub(crate) fn hashes_by(&self, whole: Hash, subject: &Subject<'_>) -> Hashes {
        let mut hashes = [None; MOST_GROUPS];
        for (hash, group) in hashes.iter_mut().zip(&self.plan().groups) {
            *hash = Some(self.hash_scope(whole, subject, &group.scope));
        }
        hashes
    }

    /// All tables of a rule hash alike.
    fn hash_scope(&self, whole: Hash, subject: &Subject<'_>, scope: &[usize]) -> Hash {
        if self.plan().is_whole(scope) {
            return whole;
        }
        let mut parts = Parts::default();
        for (part, &index) in parts.iter_mut().zip(scope) {
            *part = subject.parts[index];
        }
        self.hash_parts(&parts[..scope.len()])
    }

    /// The key that penalties are kept for, of a key with this hash.
    pub(crate) fn penalty_hash(&self, whole: Hash, subject: &Subject<'_>) -> Hash {
        self.hash_scope(whole, subject, &self.plan().penalty_scope)
    }

    /// The hash of the whole key, for which budgets are kept.
    pub(crate) fn whole_hash(&self, subject: &Subject<'_>) -> Hash {
        self.hash_parts(subject.parts())
    }

    fn hash_parts(&self, parts: &[&[u8]]) -> Hash {
        self.tables.engines[0].hash_parts(parts)
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

/// A rule as it stands, and its own limits to be handed on with a decision.
#[derive(Clone, Copy)]
pub(crate) struct RuleView<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The first of the snapshot's.
    pub(crate) engine: &'a Engine,
    pub(crate) base: &'a Interned,
}
