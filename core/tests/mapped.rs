//! The whole property suite once more, on rows in a mapped file.
#![cfg(target_os = "linux")]

#[path = "properties.rs"]
mod properties;
