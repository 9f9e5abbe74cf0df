//! Texts that live as long as the limiter: each is kept once, and found again without a lock.

use std::ffi::{CString, c_char};

use policy::bindings::{DecisionView, Once};

/// A list that only grows. It is as long as the rule has limits (and had, before it was reloaded).
#[derive(Default)]
pub(crate) struct TextList {
    first: Once<ListedText>,
    limits: Once<LimitTexts>,
}

struct ListedText {
    text: CString,
    next: Once<ListedText>,
}

/// The names of a rule's limits when they were first asked for: found without comparing texts.
struct LimitTexts {
    names: policy::bindings::Names,
    texts: Vec<KeptText>,
}

/// A text of the list.
struct KeptText(*const c_char);

// SAFETY: what it points to is never written to.
unsafe impl Send for KeptText {}
// SAFETY: as above.
unsafe impl Sync for KeptText {}

impl TextList {
    /// The name of a limit, to stay.
    #[inline]
    pub(crate) fn keep_limit(
        &self,
        view: &DecisionView<'_>,
        at: usize,
        name: &str,
    ) -> *const c_char {
        // Nothing is done with `view` but reading it: else it would have to be written down first.
        let first = self.limits.get();
        match first.filter(|first| view.is_named_by(&first.names)).and_then(|it| it.texts.get(at)) {
            Some(text) => text.0,
            None => self.keep_other(view.names(), name),
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_other(&self, names: policy::bindings::Names, name: &str) -> *const c_char {
        self.limits.get_or_make(|| {
            let texts = names.iter().map(|name| KeptText(self.keep(name))).collect();
            LimitTexts { names, texts }
        });
        self.keep(name)
    }

    /// The same text, to stay. (Names are printable and JSON escapes NUL: none has one.)
    #[inline(never)]
    pub(crate) fn keep(&self, text: &str) -> *const c_char {
        let mut place = &self.first;
        while let Some(name) = place.get() {
            if name.text.as_bytes() == text.as_bytes() {
                return name.text.as_ptr();
            }
            place = &name.next;
        }
        TextList::add(place, text)
    }

    #[cold]
    fn add(mut place: &Once<ListedText>, text: &str) -> *const c_char {
        let Ok(text) = CString::new(text) else { return c"".as_ptr() };
        loop {
            // A thread that loses a race for a place finds the other's name there, and goes on.
            let name = place.get_or_make(|| ListedText { text: text.clone(), next: Once::new() });
            if name.text == text {
                return name.text.as_ptr();
            }
            place = &name.next;
        }
    }
}

impl Drop for TextList {
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
        let names = TextList::default();
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
