//! A limit's text: what is read is written so that it is read back, and what is refused says why.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::{Limit, Limiter};

fuzz_target!(|text: &str| {
    match text.parse::<Limit>() {
        Ok(limit) => {
            let written = limit.to_string();
            let again: Limit = written.parse().expect("what is written can be read");
            // The name is the text itself, and there are many texts for one limit.
            assert_eq!(again.clone().named(""), limit.named(""));
            assert_eq!(again.to_string(), written);
        }
        Err(error) => assert!(!error.problems().is_empty() && error.to_string().len() < 10_000),
    }
    let options = Limiter::builder().capacity(16);
    if let Ok(limiter) = options.limits(text).build() {
        // Rules with permits refuse it, and that is all that may happen.
        let _ = limiter.hit("alice", 1);
    }
});
