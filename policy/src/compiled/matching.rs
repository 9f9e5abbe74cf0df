//! Which calls a match applies to.

use std::net::IpAddr;

use crate::config::policy::Match;
use crate::ip::{Range, parse_address};
use crate::key::not_an_attribute;

/// The field whose values are addresses.
const ADDRESS: &str = "ip";

/// A call as rules look at it: all parts of its key, and its attributes.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) parts: &'a [&'a [u8]],
    pub(crate) attributes: &'a [(&'a str, &'a str)],
    /// An attribute that was made of another.
    pub(crate) classified: Option<(&'a str, &'a str)>,
}

impl<'a> Subject<'a> {
    pub(crate) fn parts(&self) -> &[&'a [u8]] {
        self.parts
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&'a str> {
        let named = |(field, _): &&(&str, &str)| *field == name;
        let given = self.attributes.iter().find(named);
        self.classified.iter().find(named).or(given).map(|(_, value)| *value)
    }

    fn value(&self, field: &Field) -> Option<&'a [u8]> {
        match field {
            Field::Part(index) => Some(self.parts[*index]),
            Field::Attribute(name) => self.attribute(name).map(str::as_bytes),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Field {
    Part(usize),
    Attribute(Box<str>),
}

/// What a field's value is compared with: one of these must fit.
#[derive(Clone, Debug, PartialEq)]
enum Patterns {
    Texts(Box<[Box<str>]>),
    Ranges(Box<[Range]>),
}

impl Patterns {
    /// Of the values of a field, with the problems of those that can't be compared with.
    fn new(field: &str, values: &[String]) -> (Patterns, Vec<String>) {
        if field != ADDRESS {
            let texts = values.iter().map(|value| value.as_str().into());
            return (Patterns::Texts(texts.collect()), Vec::new());
        }
        let (mut ranges, mut wrong) = (Vec::new(), Vec::new());
        for value in values {
            match Range::parse(value) {
                Ok(range) => ranges.push(range),
                Err(message) => wrong.push(message),
            }
        }
        (Patterns::Ranges(ranges.into()), wrong)
    }

    /// How closely one of them fits a value, if one does: the bits of the longest prefix.
    #[inline(always)]
    fn fit(&self, value: &[u8]) -> Option<u8> {
        match self {
            Patterns::Texts(texts) => {
                texts.iter().any(|text| text.as_bytes() == value).then_some(0)
            }
            Patterns::Ranges(ranges) => longest_prefix(ranges, value),
        }
    }
}

/// The bits of the longest of these prefixes that holds the address in a value.
#[inline(never)]
fn longest_prefix(ranges: &[Range], value: &[u8]) -> Option<u8> {
    let address = std::str::from_utf8(value).ok().and_then(address_of)?;
    let ranges = ranges.iter().filter(|range| range.holds(address));
    ranges.map(|range| range.bits()).max()
}

/// How closely a match fits: more fields are closer, then a longer prefix of an address.
pub(crate) type Fit = (usize, u8);

/// A [`Match`], ready for use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matcher {
    fields: Box<[(Field, Patterns)]>,
}

impl Matcher {
    /// For a rule with these key parts. Problems come with the field they are in.
    pub(crate) fn new(stated: &Match, key: &[String]) -> Result<Matcher, Vec<(String, String)>> {
        let (mut fields, mut wrong) = (Vec::new(), Vec::new());
        for (name, values) in &stated.fields {
            if values.is_empty() {
                wrong.push((name.clone(), "there is no value to compare with".to_string()));
            }
            let field = match key.iter().position(|part| part == name) {
                Some(index) => Field::Part(index),
                None => {
                    let reserved = not_an_attribute(name);
                    wrong.extend(reserved.map(|message| (name.clone(), message)));
                    Field::Attribute(name.as_str().into())
                }
            };
            let (patterns, problems) = Patterns::new(name, values);
            wrong.extend(problems.into_iter().map(|message| (name.clone(), message)));
            fields.push((field, patterns));
        }
        if wrong.is_empty() { Ok(Matcher { fields: fields.into() }) } else { Err(wrong) }
    }

    /// How closely it fits the call, if it does.
    #[inline(always)]
    pub(crate) fn fit(&self, subject: &Subject<'_>) -> Option<Fit> {
        let mut bits = 0;
        for (field, patterns) in &self.fields {
            let value = subject.value(field)?;
            bits = bits.max(patterns.fit(value)?);
        }
        Some((self.fields.len(), bits))
    }

    /// The attributes that it compares.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().filter_map(|(field, _)| match field {
            Field::Attribute(name) => Some(&**name),
            Field::Part(_) => None,
        })
    }

    /// Whether every call fits.
    pub(crate) fn is_all(&self) -> bool {
        let is_whole = |patterns: &Patterns| match patterns {
            Patterns::Texts(_) => false,
            Patterns::Ranges(ranges) => ranges.iter().any(|range| range.bits() == 0),
        };
        self.fields.iter().all(|(_, patterns)| is_whole(patterns))
    }
}

/// The address in a value, which may be a key made by `ip_key`.
fn address_of(value: &str) -> Option<IpAddr> {
    parse_address(value.split_once('/').map_or(value, |(address, _)| address))
}

/// The entry that fits most closely: most fields, then the longest prefix, then the later.
pub(crate) fn closest<'m>(
    matchers: impl Iterator<Item = &'m Matcher>,
    subject: &Subject<'_>,
) -> Option<usize> {
    matchers
        .enumerate()
        .filter_map(|(index, matcher)| Some((matcher.fit(subject)?, index)))
        .max()
        .map(|(_, index)| index)
}
