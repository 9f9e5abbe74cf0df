//! The Rust blocks of the READMEs and of the guide, as doctests.

#[doc = include_str!("../../README.md")]
pub struct Readme;

#[doc = include_str!("../../core/README.md")]
pub struct Core;

#[doc = include_str!("../../policy/README.md")]
pub struct Policy;

#[doc = include_str!("../../docs/rust.md")]
pub struct Rust;

#[doc = include_str!("../../docs/recipes.md")]
pub struct Recipes;

#[doc = include_str!("../../docs/migration.md")]
pub struct Migration;
