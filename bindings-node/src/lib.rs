//! The native part of the npm package `tidegate`.
//!
//! JavaScript (`lib/`) has the classes that users see; here are the functions that they call. A
//! call that must be fast is a function of its own for each rule. Its key is copied to the stack in
//! one step. Its answer is written to a scratch array that JavaScript reads. Every other call takes
//! a handle.

mod changes;
mod decision;
mod failure;
mod handle;
mod http;
mod js;
mod json;
mod key;
mod limiter;
mod rule;
mod surface;
mod wait;

use std::rc::Rc;

use js::{Result, Scope};
use surface::{Add, Surface};

/// All functions of an environment.
pub(crate) fn functions(add: Add<'_>, scope: Scope<'_>, surface: &Rc<Surface>) -> Result<()> {
    decision::layout(add, scope)?;
    limiter::functions(add, scope, surface)?;
    rule::functions(add, scope, surface)?;
    http::functions(add, scope, surface)?;
    changes::functions(add, scope, surface)
}
