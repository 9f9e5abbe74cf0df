//! What users state: limits, rules and policies, as code, maps, YAML or JSON.

pub(crate) mod limit;
pub(crate) mod load;
pub(crate) mod parse;
pub(crate) mod policy;
#[cfg(feature = "schema")]
pub(crate) mod schema;
pub(crate) mod suggest;
