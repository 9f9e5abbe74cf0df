//! Tidegate for C: see `include/tidegate.h`, which is made from these comments and is the manual.
//!
//! Nothing here decides: each function checks what it was handed, calls `policy`, and writes the answer
//! down. A handle or structure arrives as `Option<&T>`, which is C's `const T *` with NULL for none.

// Names are C's. What each `unsafe` function asks of its caller stands once, at the head of the header.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod boundary;
mod changes;
mod clock;
mod decision;
mod held;
mod json;
mod key;
mod limiter;
mod names;
mod rule;
mod status;
mod version;
