//! What users state: limits, rules and policies, as code, maps, YAML or JSON.

pub(crate) mod limit;
pub(crate) mod options;
pub(crate) mod parse;
pub(crate) mod policy;
pub(crate) mod read;
#[cfg(feature = "schema")]
pub(crate) mod schema;
pub(crate) mod suggest;
pub(crate) mod value;
