//! Where state lives: tables in memory or in files, and what was changed at run time.

pub(crate) mod described;
#[cfg(target_os = "linux")]
pub(crate) mod file_store;
#[cfg(target_os = "linux")]
pub(crate) mod inspect;
pub(crate) mod known;
#[cfg(target_os = "linux")]
pub(crate) mod moving;
pub(crate) mod open;
pub(crate) mod runtime;
pub(crate) mod tables;
pub(crate) mod trail;
