//! Header fields of a decision that a surface kept as [`Facts`].

use crate::decision::headers::{Facts, Style};
use crate::rule::Rule;

impl Facts<'_> {
    /// As [`Decision::headers`](crate::Decision::headers), of a decision of this rule.
    pub fn headers(&self, rule: &Rule, style: Style) -> Vec<(String, String)> {
        self.fields(&rule.state.last().labels, style)
    }
}
