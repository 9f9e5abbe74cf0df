//! Maps that code hands in, as the plain values that a policy file has.

use serde_core::Serialize;
use serde_json::Value;

use crate::config::limit::one;
use crate::error::Error;

/// Whatever can be serialized, as a plain value.
pub(crate) fn plain_value(from: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(from).map_err(|error| one("", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_map_of_texts_is_an_error() {
        let odd = std::collections::BTreeMap::from([([1_u8, 2], "20/min")]);
        assert_eq!(plain_value(&odd).unwrap_err().to_string(), "key must be a string");
        assert_eq!(plain_value(&("a", 1)).unwrap(), serde_json::json!(["a", 1]));
    }
}
