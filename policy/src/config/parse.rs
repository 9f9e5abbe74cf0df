//! A policy's text as plain values: YAML or JSON, with nothing lost on the way.

use std::collections::HashSet;
use std::fmt;

use serde_core::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The most bytes of a policy's text: far more than any has, and little enough to be read at once.
pub(crate) const MOST_TEXT: usize = 4 << 20;

/// What is said of a text that is longer.
pub(crate) fn too_long() -> String {
    format!("the text is longer than {} MB, the most that a policy has", MOST_TEXT >> 20)
}

/// Reads a text, or says why it is neither YAML nor JSON.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    if text.len() > MOST_TEXT {
        return Err(too_long());
    }
    // Nearly all JSON is YAML, but not all of it.
    let json = match json(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    yaml(text).map_err(|yaml| match looks_like_json(text) {
        true => format!("this can't be read as JSON: {json}"),
        false => format!("this can't be read as YAML: {yaml}"),
    })
}

fn json(text: &str) -> Result<Value, serde_json::Error> {
    // A `Value` silently keeps the last of two fields with one name.
    serde_json::from_str::<Distinct>(text)?;
    serde_json::from_str(text)
}

#[cfg(not(feature = "yaml"))]
fn yaml(_: &str) -> Result<Value, String> {
    Err("this build has no YAML; write JSON, or turn on tidegate's feature \"yaml\"".to_string())
}

#[cfg(feature = "yaml")]
fn yaml(text: &str) -> Result<Value, String> {
    use serde_saphyr::options::NonFiniteFloatPolicy;
    let options = serde_saphyr::options! {
        strict_booleans: true,
        // A `Value` has no NaN; as text it is refused where it stands.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| said(&error))
}

/// What is said of YAML that can't be read, and where.
#[cfg(feature = "yaml")]
fn said(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::{Error as Yaml, UserMessageFormatter};
    let message = match error.without_snippet() {
        Yaml::DuplicateMappingKey { key: Some(key), .. } => format!("{key:?} is there twice"),
        other => {
            let text = other.render_with_formatter(&UserMessageFormatter);
            // Which limit of the YAML reader it was says nothing to a user.
            let before = text.split_once(": limits breached").map(|(before, _)| before);
            return before.unwrap_or(&text).trim().to_string();
        }
    };
    match error.location() {
        Some(at) => format!("{message} at line {}, column {}", at.line(), at.column()),
        None => message,
    }
}

fn looks_like_json(text: &str) -> bool {
    let inner = text.trim_start().strip_prefix('{');
    inner.is_some_and(|inner| inner.trim_start().starts_with('"'))
}

/// Anything in which no map has two fields of one name.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distinct, D::Error> {
        deserializer.deserialize_any(DistinctVisitor)
    }
}

struct DistinctVisitor;

impl<'de> Visitor<'de> for DistinctVisitor {
    type Value = Distinct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(Distinct)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(Distinct)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(Distinct)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(Distinct)
    }
    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(Distinct)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Distinct, A::Error> {
        while list.next_element::<Distinct>()?.is_some() {}
        Ok(Distinct)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Distinct, A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(A::Error::custom(format!("{name:?} is there twice")));
            }
            seen.insert(name);
            map.next_value::<Distinct>()?;
        }
        Ok(Distinct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[cfg(not(feature = "yaml"))]
    #[test]
    fn without_yaml_json_is_read_and_yaml_is_an_error_that_names_the_feature() {
        assert_eq!(parse(r#"{"a": [1, true]}"#).unwrap(), json!({"a": [1, true]}));
        let error = parse("a: 1").unwrap_err();
        assert!(error.contains("feature \"yaml\"") && error.contains("YAML"), "{error}");
        let json = parse(r#"{"a": 1, "a": 2}"#).unwrap_err();
        assert!(json.contains("twice"), "{json}");
    }

    #[cfg(feature = "yaml")]
    #[test]
    fn json_that_is_no_yaml_and_yaml_that_is_no_json() {
        assert_eq!(parse("{\"a\":\t\"\\ud83d\\ude00\"}").unwrap(), json!({"a": "😀"}));
        assert_eq!(
            parse("a: [1, yes, off, .nan]").unwrap(),
            json!({"a": [1, "yes", "off", ".nan"]})
        );
        assert_eq!(parse("").unwrap(), Value::Null);
    }

    #[cfg(feature = "yaml")]
    #[test]
    fn a_field_that_is_there_twice_is_refused() {
        let twice = parse(r#"{"a": {"max": 1, "max": 2}}"#).unwrap_err();
        assert_eq!(twice, "this can't be read as JSON: \"max\" is there twice at line 1 column 22");
        assert!(parse("a: 1\nb: 2\na: 3").unwrap_err().contains("line 3"));
        assert!(parse("{a: 1, a: 2}").is_err());
        assert!(parse(r#"[{"a": 1}, {"a": 2}]"#).is_ok());
    }

    #[test]
    fn texts_made_to_do_harm_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_string();
        for level in 1..12 {
            let uses = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{uses}]\n");
        }
        assert!(parse(&bomb).is_err());
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}"), ("- ", "")] {
            for depth in [200, 100_000] {
                let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                assert!(parse(&deep).is_err(), "{open} {depth}");
            }
        }
        assert!(parse(&" ".repeat(MOST_TEXT + 1)).unwrap_err().contains("4 MB"));
    }
}
