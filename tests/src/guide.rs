//! The Rust blocks of the guide, as doctests.

#[doc = include_str!("../../docs/rust.md")]
pub struct Rust;

#[doc = include_str!("../../docs/recipes.md")]
pub struct Recipes;

#[doc = include_str!("../../docs/migration.md")]
pub struct Migration;
