//! The known name that a mistyped one comes nearest to.

/// The nearest of the known names, if it is near.
pub(crate) fn nearest<'k, S: AsRef<str>>(name: &str, known: &'k [S]) -> Option<&'k str> {
    known
        .iter()
        .map(|other| (strsim::damerau_levenshtein(name, other.as_ref()), other.as_ref()))
        .filter(|(distance, other)| *distance <= 1 + other.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// What is said of a name that is unknown.
pub(crate) fn unknown<S: AsRef<str>>(what: &str, name: &str, known: &[S]) -> String {
    match nearest(name, known) {
        Some(other) => format!("unknown {what} {name:?}; did you mean {other:?}?"),
        None => {
            let all: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            format!("unknown {what} {name:?}; known are {}", all.join(", "))
        }
    }
}
