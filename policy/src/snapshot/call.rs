//! What a snapshot says of one call: its key, its exemption, and the limits that it is judged by.

use std::collections::BTreeSet;

use crate::compiled::interned::Interned;
use crate::compiled::matching::{Matcher, Subject, closest};
use crate::compiled::variant::Variant;
use crate::config::policy::{Match, Mode};
use crate::decision::Reason;
use crate::error::{Code, Error};
use crate::key::{Call, Parts};
use crate::snapshot::{Blocked, ForKey, Layers, Resolved, Snapshot, VariantRef};
use crate::store::runtime::Note;

impl Snapshot {
    /// The key of a call that needs nothing but the engine's own answer.
    #[inline]
    pub(crate) fn plain_key<'a>(&self, call: &'a Call<'_>) -> Option<&'a [u8]> {
        call.key.single().filter(|_| self.plain && call.max.is_none())
    }

    /// A call as the rule looks at it, and whether `classify` had to use its default. `room` is for
    /// parts of a key that are not side by side yet.
    #[inline(always)]
    pub(crate) fn subject<'a>(
        &'a self,
        call: &'a Call<'_>,
        room: &'a mut Parts<'a>,
    ) -> Result<(Subject<'a>, bool), Error> {
        let wanted =
            self.plan().parts - usize::from(self.classes.as_ref().is_some_and(|c| c.is_part));
        if call.key.len() != wanted {
            return Err(self.wrong_key(call.key.len(), wanted));
        }
        let attributes = call.attributes;
        let Some(classes) = &self.classes else {
            let parts = call.key.all_parts(room);
            return Ok((Subject { parts, attributes, classified: None }, false));
        };
        let mut subject = Subject { parts: &[], attributes, classified: None };
        let known = subject.attribute(&classes.from).and_then(|value| classes.map.get(value));
        let class = known.unwrap_or(&classes.default);
        let is_defaulted = known.is_none();
        if classes.is_part {
            subject.parts = call.key.parts_and(class.as_bytes(), room);
        } else {
            subject.parts = call.key.all_parts(room);
            subject.classified = Some((&classes.to, class));
        }
        Ok((subject, is_defaulted))
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
        // Most rules have none of a kind, and need no call to find that out.
        Layers {
            when: match self.whens.is_empty() {
                true => 0,
                false => after(closest(self.whens.iter(), subject)),
            },
            by_match: match self.by_match.is_empty() {
                true => 0,
                false => after(closest(self.by_match.iter().map(|(matcher, _)| matcher), subject)),
            },
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

    /// The call, and the limits that it is judged by.
    #[inline(always)]
    pub(crate) fn resolve<'a>(
        &'a self,
        call: &'a Call<'_>,
        room: &'a mut Parts<'a>,
    ) -> Result<Resolved<'a>, Error> {
        let (subject, defaulted) = self.subject(call, room)?;
        let variant = self.variant(self.layers(&subject));
        let variant = match call.max {
            Some(max) => VariantRef::Own(Interned::own(self.with_max(variant, max)?)),
            None => VariantRef::Known(variant),
        };
        Ok(Resolved { subject, variant, defaulted })
    }

    /// Why a call is allowed and not counted, if it is.
    #[inline]
    pub(crate) fn uncounted(&self, resolved: &Resolved<'_>) -> Option<Reason> {
        match resolved.variant.effective.mode {
            Mode::Off => Some(Reason::Off),
            _ if self.exempts.is_empty() => None,
            _ => self.exemption(&resolved.subject).map(|_| Reason::Exempt),
        }
    }

    pub(super) fn layer_of<'p>(&self, parts: impl Iterator<Item = &'p [u8]> + Clone) -> usize {
        let same = |other: &&ForKey| other.parts.iter().map(Vec::as_slice).eq(parts.clone());
        let for_hash = self.by_key.get(&self.hash_key(parts.clone()));
        for_hash.and_then(|all| all.iter().find(same)).map_or(0, |found| found.layer)
    }

    /// The same limits with the call's own `max`.
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
}
