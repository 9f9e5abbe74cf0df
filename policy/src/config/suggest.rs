//! The known name that a mistyped one comes nearest to.

/// Longer names are not compared: that takes time and room by the product of both lengths.
const LONGEST: usize = 64;
/// Known names that are listed.
const MOST_LISTED: usize = 20;

/// The nearest of the known names, if it is near.
pub(crate) fn nearest<'k, S: AsRef<str>>(name: &str, known: &'k [S]) -> Option<&'k str> {
    if name.len() > LONGEST {
        return None;
    }
    known
        .iter()
        .filter(|other| other.as_ref().len() <= LONGEST)
        .map(|other| (strsim::damerau_levenshtein(name, other.as_ref()), other.as_ref()))
        .filter(|(distance, other)| *distance <= 1 + other.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// What is said of a name that is unknown.
pub(crate) fn unknown<S: AsRef<str>>(what: &str, name: &str, known: &[S]) -> String {
    match nearest(name, known) {
        Some(other) => format!("unknown {what} {name:?}; did you mean {other:?}?"),
        None if known.is_empty() => format!("unknown {what} {name:?}; there is none"),
        None => {
            let listed: Vec<&str> = known.iter().take(MOST_LISTED).map(AsRef::as_ref).collect();
            let more = if known.len() > MOST_LISTED { ", …" } else { "" };
            format!("unknown {what} {name:?}; known are {}{more}", listed.join(", "))
        }
    }
}
