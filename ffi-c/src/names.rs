//! Texts that live as long as the limiter: each is kept once, and found again without a lock.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// A list that only grows. It is as long as the rule has limits (and had, before it was reloaded).
#[derive(Default)]
pub(crate) struct Names {
    first: OnceLock<Box<Name>>,
}

struct Name {
    text: CString,
    next: OnceLock<Box<Name>>,
}

impl Names {
    /// The same text, to stay. (Names are printable and JSON escapes NUL: none has one.)
    #[inline]
    pub(crate) fn keep(&self, text: &str) -> *const c_char {
        let mut place = &self.first;
        while let Some(name) = place.get() {
            if name.text.as_bytes() == text.as_bytes() {
                return name.text.as_ptr();
            }
            place = &name.next;
        }
        Names::add(place, text)
    }

    #[cold]
    fn add(mut place: &OnceLock<Box<Name>>, text: &str) -> *const c_char {
        let Ok(text) = CString::new(text) else { return c"".as_ptr() };
        loop {
            // Who loses a race for a place finds the other's name there, and goes on.
            let name =
                place.get_or_init(|| Box::new(Name { text: text.clone(), next: OnceLock::new() }));
            if name.text == text {
                return name.text.as_ptr();
            }
            place = &name.next;
        }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // One by one: a long list must not need a deep stack.
        let mut next = self.first.take();
        while let Some(mut name) = next {
            next = name.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_whoever_asks() {
        let names = Names::default();
        let all: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        let places = || all.iter().map(|text| names.keep(text) as usize).collect::<Vec<_>>();
        let (here, there) = std::thread::scope(|scope| {
            let there = scope.spawn(places);
            (places(), there.join().unwrap())
        });
        assert_eq!(here, there);
        let distinct: std::collections::HashSet<usize> = here.into_iter().collect();
        assert_eq!(distinct.len(), 100);
    }
}
