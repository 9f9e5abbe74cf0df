//! A policy file that is read again while its limiter is at work.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate::{Code, LimitPatch, Limiter, Match, Target};

/// A policy file of its own, gone with the test.
struct PolicyFile(PathBuf);

impl PolicyFile {
    fn new(rules: &str) -> PolicyFile {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("reload-{}-{number}.yaml", std::process::id());
        let file = PolicyFile(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.write(rules);
        file
    }
    fn write(&self, rules: &str) {
        std::fs::write(&self.0, format!("version: 1\nrules: {{ {rules} }}\n")).unwrap();
    }
}

impl Drop for PolicyFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn granted(limiter: &Limiter, rule: &str, hits: usize) -> usize {
    let rule = limiter.rule(rule).unwrap();
    (0..hits).filter(|_| rule.allow("alice").unwrap()).count()
}

#[test]
fn keys_keep_their_state_while_numbers_change() {
    let file = PolicyFile::new("a: { limits: { l: 10/h window }, ceiling: 20 }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    let held = limiter.rule("a").unwrap();
    assert_eq!(granted(&limiter, "a", 8), 8);
    file.write("a: { limits: { l: 12/h window }, ceiling: 20 }");
    assert_eq!(granted(&limiter, "a", 5), 2, "nothing is read unasked");
    limiter.reload().unwrap();
    assert_eq!(granted(&limiter, "a", 5), 2);
    assert_eq!(held.peek("alice", 0).unwrap().limit, Some(12), "handles act by the new policy");
}

#[test]
fn another_shape_starts_afresh_and_keeps_what_was_changed_at_run_time() {
    let file = PolicyFile::new("a: { limits: { l: 2/h } }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    let rule = limiter.rule("a").unwrap();
    rule.set_override(Target::key("bob"), vec![("l".into(), LimitPatch::max(7))]).unwrap();
    rule.add_exempt(Match::new([("role", "admin")])).unwrap();
    assert_eq!(granted(&limiter, "a", 5), 2);
    file.write("a: { limits: { l: 2/h window }, ceiling: 9 }");
    limiter.reload().unwrap();
    assert_eq!(granted(&limiter, "a", 5), 2);
    assert_eq!(rule.hit("bob", 1).unwrap().limit, Some(7));
    assert_eq!(rule.exempts().unwrap().len(), 1);
}

#[test]
fn rules_come_and_go() {
    let file = PolicyFile::new("a: { limits: 2/h }, b: { limits: 3/h }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    file.write("b: { limits: 3/h }, c: { limits: 4/h }");
    limiter.reload().unwrap();
    assert_eq!(limiter.rules(), ["b", "c"]);
    assert_eq!(limiter.rule("a").unwrap_err().code(), Code::Rule);
    assert_eq!(granted(&limiter, "c", 9), 4);
}

#[test]
fn decisions_say_what_they_said_whatever_becomes_of_their_rule() {
    let file = PolicyFile::new("a: { limits: { old: 50/h } }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    let rule = limiter.rule("a").unwrap();
    let before: Vec<_> = (0..100).map(|_| rule.hit("alice", 1).unwrap()).collect();
    file.write("a: { limits: { new: 7/h } }");
    limiter.reload().unwrap();
    let after = rule.hit("bob", 9).unwrap();
    limiter.close();
    drop((rule, limiter));
    let told = std::thread::spawn(move || {
        let copies = before.clone();
        assert_eq!(copies, before);
        (
            before[99].reason().map(str::to_string),
            before[99].limit,
            before[0].headers(Default::default()),
        )
    });
    let (reason, limit, headers) = told.join().unwrap();
    assert_eq!((reason.as_deref(), limit), (Some("old"), Some(50)));
    assert!(headers.iter().any(|(_, value)| value.contains("\"old\";q=50")), "{headers:?}");
    assert_eq!((after.reason(), after.limit), (Some("cost"), Some(7)));
}

/// A rule that a reload takes away and another one brings back is the one that its holders have:
/// with the new numbers and the counts that it had.
#[test]
fn a_held_rule_that_comes_back_goes_by_the_new_policy() {
    let file = PolicyFile::new("a: { limits: { l: 10/h } }, b: { limits: 1/h }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    let held = limiter.rule("a").unwrap();
    assert_eq!(granted(&limiter, "a", 3), 3);
    file.write("b: { limits: 1/h }");
    limiter.reload().unwrap();
    assert_eq!(limiter.rule("a").unwrap_err().code(), Code::Rule);
    assert_eq!(held.hit("alice", 1).unwrap().limit, Some(10), "it goes on as it was");
    file.write("a: { limits: { l: 20/h } }, b: { limits: 1/h }");
    limiter.reload().unwrap();
    let again = limiter.rule("a").unwrap();
    assert!(held.is_same(&again));
    let [mine, theirs] = [&held, &again].map(|rule| rule.peek("alice", 0).unwrap());
    assert_eq!((mine.limit, mine.remaining), (Some(20), theirs.remaining));
    assert_eq!(mine.remaining, Some(6));
    limiter.close();
    assert_eq!(held.allow("alice").unwrap_err().code(), Code::Closed);
}

/// A limiter that is closed closes the rules that it had, too.
#[test]
fn a_held_rule_that_is_gone_is_closed_with_its_limiter() {
    let file = PolicyFile::new("a: { limits: 1/h }, b: { limits: 1/h }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    let held = limiter.rule("a").unwrap();
    file.write("b: { limits: 1/h }");
    limiter.reload().unwrap();
    limiter.close();
    assert_eq!(held.allow("alice").unwrap_err().code(), Code::Closed);
}

#[test]
fn limits_that_are_named_by_their_text_keep_state_and_changes_under_other_numbers() {
    let file = PolicyFile::new("a: { limits: '5/h fixed, 10/h' }");
    let limiter = Limiter::from_file(&file.0).unwrap();
    let rule = limiter.rule("a").unwrap();
    assert_eq!(granted(&limiter, "a", 9), 5);
    rule.set_override(Target::key("bob"), vec![("5/h".into(), LimitPatch::max(2))]).unwrap();
    file.write("a: { limits: '8/h fixed, 20/h' }");
    limiter.reload().unwrap();
    assert_eq!(granted(&limiter, "a", 9), 3);
    assert_eq!(rule.hit("alice", 1).unwrap().reason(), Some("8/h"));
    assert_eq!(rule.hit("bob", 1).unwrap().limit, Some(2));
    assert_eq!(rule.overrides().unwrap()[0].1[0].0, "8/h");
    assert!(
        rule.set_override(Target::key("bob"), vec![("5/h".into(), LimitPatch::max(2))]).is_err()
    );
    rule.set_override(Target::key("bob"), vec![("8/h".into(), LimitPatch::max(4))]).unwrap();
    assert_eq!(rule.overrides().unwrap().len(), 1);
}
