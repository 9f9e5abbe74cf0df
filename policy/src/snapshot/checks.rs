//! Whether a run-time change fits the policy, asked before and after it is made.

use crate::compiled::matching::Matcher;
use crate::compiled::validate::check_patches;
use crate::compiled::variant::Variant;
use crate::config::policy::Match;
use crate::error::Problem;
use crate::snapshot::{Layers, Snapshot};
use crate::store::runtime::{Runtime, Target};

impl Snapshot {
    /// Which of the changes this policy can't apply, and why: the rest of them are in force.
    pub(crate) fn ignored(&self, runtime: &Runtime) -> Vec<Problem> {
        let (plan, key) = (self.plan(), &self.config.key);
        let mut ignored = check_patches("default", &runtime.default.what, plan, key);
        ignored.extend(self.refused_default.iter().map(|why| why.within("default")));
        for (index, one) in runtime.overrides.iter().enumerate() {
            let (target, limits) = &one.what;
            let path = format!("overrides[{index}]");
            let wrong = self.check_target(target).map(drop).err().unwrap_or_default();
            ignored.extend(wrong.iter().map(|why| why.within(&path)));
            let unknown = check_patches(&path, limits, plan, key);
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

    pub(crate) fn check_match(&self, matches: &Match) -> Result<(), Vec<Problem>> {
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
}
