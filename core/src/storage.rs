//! Tables in files that all processes of a host map.

#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod directory;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod error;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod format1;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod header;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod host;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod layout;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod moving;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod offenders;
pub(crate) mod retired;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod table_file;
#[cfg(all(target_os = "linux", not(all(test, loom))))]
pub(crate) mod tables;
