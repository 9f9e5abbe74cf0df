//! Reads the tables of a file store from outside, without disturbing their users.

use std::path::Path;

use serde_json::Value;
use tidegate_core::FILE_FORMAT;

use crate::error::{Code, Error};
use crate::key::name::{Name, NamedCount};
use crate::store::described::Inspected;
use crate::store::file_store::{Folder, RuleShape};
use crate::store::tables;

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
