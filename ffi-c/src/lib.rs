//! Tidegate for C: see `include/tidegate.h`, which is made from these comments and is the manual.
//!
//! Nothing here decides: each function checks what it was handed, calls `policy`, and writes the
//! answer down. A handle or structure arrives as `Option<&T>`, which is C's `const T *` with NULL
//! for none.

// Names are C's. What each `unsafe` function asks of its caller stands once, at the head of the
// header.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

pub mod blocks;
pub mod boundary;
pub mod bytes;
pub mod changes;
pub mod clock;
pub mod decision;
pub mod error;
pub mod held;
mod json;
pub mod key;
#[cfg(test)]
mod layout;
pub mod limiter;
mod memory;
mod names;
pub mod rule;
pub mod status;
pub mod version;
