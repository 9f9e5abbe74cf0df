//! Options that are one of a few words, and options that are periods.

use tidegate_core::OnFull;

use crate::config::policy::Mode;
use crate::config::read::{MODES, ON_FULL};
use crate::decision::headers::Style;

/// The styles of header fields by name.
pub const STYLES: [(&str, Style); 3] =
    [("both", Style::Both), ("legacy", Style::Legacy), ("ietf", Style::Ietf)];

/// The fields of a rule or limit that are periods, wherever they stand.
pub const PERIODS: [&str; 7] = ["per", "lease", "cooldown", "steps", "quiet", "round", "within"];

fn chosen<T: Copy>(choices: &[(&str, T)], text: &str) -> Option<T> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice)
}

/// What becomes of new keys when a table is full, by name.
///
/// ```
/// use tidegate::OnFull;
/// use tidegate::bindings::on_full;
/// assert_eq!((on_full("deny"), on_full("drop")), (Some(OnFull::Deny), None));
/// ```
pub fn on_full(text: &str) -> Option<OnFull> {
    chosen(&ON_FULL, text)
}

/// A rule's mode by name.
///
/// ```
/// use tidegate::Mode;
/// use tidegate::bindings::mode;
/// assert_eq!((mode("shadow"), mode("on")), (Some(Mode::Shadow), None));
/// ```
pub fn mode(text: &str) -> Option<Mode> {
    chosen(&MODES, text)
}

/// A style of header fields by name.
///
/// ```
/// use tidegate::Style;
/// use tidegate::bindings::style;
/// assert_eq!((style("ietf"), style("IETF")), (Some(Style::Ietf), None));
/// ```
pub fn style(text: &str) -> Option<Style> {
    chosen(&STYLES, text)
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn is_period(schema: &Value) -> bool {
        let refers = |schema: &Value| schema["$ref"].as_str() == Some("#/definitions/Period");
        let any = schema["anyOf"].as_array().into_iter().flatten();
        any.chain(schema["allOf"].as_array().into_iter().flatten())
            .chain([schema, &schema["items"]])
            .any(refers)
    }

    #[test]
    fn the_periods_are_those_of_the_schema() {
        let schema = crate::schema();
        let definitions = schema["definitions"].as_object().unwrap().values();
        let fields = definitions.chain([&schema]).flat_map(|one| one["properties"].as_object());
        let found = fields.flatten().filter(|(_, schema)| is_period(schema));
        let found: BTreeSet<&str> = found.map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, BTreeSet::from(PERIODS));
    }
}
