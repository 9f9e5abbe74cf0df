//! A policy's text: it makes a limiter that can be used, or an error that says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::{Call, Limiter, Policy};

/// Bytes that tables may take here, so that running out of memory is a finding.
const MEMORY: u64 = 16 << 20;

fuzz_target!(|text: &str| {
    let mut policy = match Policy::from_text(text) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(!error.problems().is_empty());
            let shown = error.to_string();
            assert!(
                shown.len() < 200_000 && !shown.contains(|c: char| c.is_control() && c != '\n')
            );
            return;
        }
    };
    policy.memory = policy.memory.min(MEMORY);
    // What others of this process keep must not depend on what came before.
    let options = Limiter::builder().capacity(4).store("memory");
    if let Ok(limiter) = options.policy(policy).build() {
        use_it(&limiter);
    }
});

fn use_it(limiter: &Limiter) {
    let attributes = [("role", "admin"), ("ip", "10.0.0.1"), ("tier", "x")];
    for name in limiter.rules().iter().take(4) {
        let rule = limiter.rule(name).expect("a rule of the policy");
        for parts in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
            let call = || Call::of(parts).with(&attributes);
            for _ in 0..3 {
                let _ = rule.hit(call(), 1).map(|decision| decision.headers(tidegate::Style::Both));
                let _ = rule.permit(call());
            }
            let _ = (rule.stats(call()), rule.spend(call(), 1), rule.hit(call().max(7), 1));
        }
    }
    let _ = (limiter.metrics(), limiter.events(None), limiter.audit());
}
