//! Reads the tables of a file store from outside, without disturbing their users.

use std::path::Path;

use serde_json::Value;
use tidegate_core::FILE_FORMAT;

use crate::error::{Code, Error};
use crate::key::name::{Name, NamedCount};
use crate::store::described::InspectedLimit;
use crate::store::file_store::{Folder, RuleShape};
use crate::store::tables;

/// What a table file of a rule holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inspected {
    /// The rule.
    pub rule: String,
    /// The version of the file's format.
    pub format: u64,
    /// Its limits as the file describes them.
    pub limits: Vec<InspectedLimit>,
    /// Keys that it may hold live.
    pub capacity: usize,
    /// Rows in use, in the table of the rule's first scope.
    pub keys: usize,
    /// Keys that were denied and are remembered for it.
    pub penalised: usize,
    /// Keys that have spent of a budget.
    pub spending: usize,
    /// Overrides in force.
    pub overrides: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether another table took this one's place while it was looked at.
    pub retired: bool,
    /// Keys that were denied most; estimates once a rule is busy.
    pub top_offenders: Vec<NamedCount>,
}

/// The tables of a folder, by the names of their rules.
pub(crate) fn inspect(path: &Path) -> Result<Vec<Inspected>, Error> {
    let folder = Folder::open_known(path)?;
    let mut found = Vec::new();
    for name in folder.table_names()? {
        found.push(inspect_table(&folder, &name)?);
    }
    found.sort_by(|a, b| a.rule.cmp(&b.rule));
    Ok(found)
}

fn inspect_table(folder: &Folder, name: &str) -> Result<Inspected, Error> {
    let path = folder.path().join(name);
    let error = |reason: &str| Error::new(Code::Store, format!("{}: {reason}", path.display()));
    let file = folder.known_table(name)?.ok_or_else(|| error("it is gone"))?;
    let damaged = || error("its description is damaged; remove it to start afresh");
    let text: Value = serde_json::from_str(file.shape()).map_err(|_| damaged())?;
    let rule = text["rule"].as_str().ok_or_else(damaged)?.to_string();
    let shape = RuleShape::from_value(&text).ok_or_else(damaged)?;
    let held = tables::FileContents::of(&file, &shape).ok_or_else(damaged)?;
    let offender = |(name, count): (tidegate_core::NameWords, u64)| {
        Some(NamedCount { key: Name::from_words(&name)?.texts(), count })
    };
    Ok(Inspected {
        overrides: folder.read_changes(&rule)?.overrides.len(),
        rule,
        format: FILE_FORMAT,
        limits: shape.limits(),
        capacity: shape.capacity,
        keys: held.keys,
        penalised: held.penalised,
        spending: held.spending,
        bytes: file.bytes(),
        retired: file.is_retired(),
        top_offenders: held.names.into_iter().filter_map(offender).collect(),
    })
}
