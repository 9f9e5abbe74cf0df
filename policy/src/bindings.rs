//! What the bindings to other languages share. It is no part of the public API: any version may
//! change it.

mod call;
mod choices;
mod values;
mod waiting;

pub use crate::config::limit::parse_period;
pub use crate::config::read::{limit_patches, limit_patches_in, parse_bytes};
pub use crate::decision::headers::Facts;
pub use crate::decision::view::{DecisionSink, DecisionView, Names};
pub use crate::key::{RESERVED, not_an_attribute};
pub use crate::rule::attributes::ReadAttributes;
pub use crate::rule::headers::HeaderTexts;
pub use call::{OwnedCall, address_key, is_reserved};
pub use choices::{PERIODS, STYLES, mode, on_full, style};
pub use values::{budget_value, inspected_value, overrides_value, stats_value};
pub use waiting::{Got, WaitStep, Waiting, Want};
// A forked child may find a lock of the standard library taken.
pub use tidegate_core::{ForkLock, Once};
