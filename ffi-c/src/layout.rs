//! Structures lie in memory as C has them: `tests/c/layout.inc` says how, and C asserts the same
//! file.
//!
//! `UPDATE=1 cargo test -p tidegate-c --lib layout` writes it anew: fields may come at the end
//! only.

use std::fmt::Write;
use std::mem::offset_of;

use crate::{changes::*, decision::*, error::*, key::*, limiter::*, rule::*};

macro_rules! layout {
    ($($structure:ident { $($field:ident),* })*) => {{
        let mut text = String::new();
        $({
            // Does not build if a field is missing.
            let _all = |it: $structure| { let $structure { $($field: _),* } = it; };
            let (name, size) = (stringify!($structure), size_of::<$structure>());
            writeln!(text, "SIZE({name}, {size})").unwrap();
            $({
                let (field, at) = (stringify!($field), offset_of!($structure, $field));
                writeln!(text, "FIELD({name}, {field}, {at})").unwrap();
            })*
        })*
        text
    }};
}

#[test]
#[cfg(target_pointer_width = "64")]
fn structures_lie_in_memory_as_c_has_them() {
    let layout = layout! {
        tg_bytes { data, len }
        tg_attribute { name, value }
        tg_key { version, has_max, bytes, parts, part_count, attributes, attribute_count, max }
        tg_limit_left { name, max, window_seconds, remaining, reset_after_ms, more_after_ms }
        tg_decision {
            version, allowed, warning, alert, notify, limit_count, reserved, rule, reason,
            would_deny,
            attach, limit, remaining, retry_after_ms, reset_after_ms, at_ns, reserved_words, limits
        }
        tg_options { version, on_full, store, capacity, clock, recreate, group, memory }
        tg_change_options { version, reserved, for_ms, by, reason }
        tg_recorded { version, reserved, used, limit, remaining, reset_after_ms, reserved_words }
        tg_budget_state {
            version, over, over_per_hit, reserved, spent, remaining, reset_after_ms, reserved_words
        }
        tg_limit_use { name, used, max, remaining, reset_after_ms, reserved_words }
        tg_key_stats {
            version, known, limit_count, has_budget, blocked, reserved, cooldown_left_ms,
            violations, last_allowed_ms, budget, reserved_words, limits
        }
        tg_error { status, reserved, length, text }
    };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/layout.inc");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &layout).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), layout);
    let header = include_str!("../../include/tidegate.h");
    let structures =
        header.lines().filter(|line| line.starts_with("typedef struct") && line.ends_with('{'));
    let listed = layout.lines().filter(|line| line.starts_with("SIZE"));
    assert_eq!(structures.count(), listed.count(), "every structure of the header is listed");
}
