#!/usr/bin/env python3
"""Breaks the engine by hand, one line at a time, and wants the model named beside it to fail.

A model that passes on broken code proves nothing. Each entry below is one break: the file, what is
replaced by what, and the loom model that must notice. Run from the project's root:

    python3 tests/mutants.py            all of them (about fifteen minutes on two cores)
    python3 tests/mutants.py settle     those whose name contains a word
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# name, file in core/src, the line as it is, the line broken, the model that must fail
MUTANTS = [
    ("swap-split-in-two", "row.rs",
     "        self.words[at].compare_exchange(seen, next, Ordering::Release, Ordering::Acquire).map(drop)",
     "        let now = self.words[at].load(Ordering::Acquire);\n        if now != seen { return Err(now); }\n        self.words[at].store(next, Ordering::Release);\n        Ok(())",
     "loom_bucket::two_takers_one_token"),
    ("lost-swap-counts-as-won", "row.rs",
     "Err(newer) => seen = newer,", "Err(_) => return Ok(result),",
     "loom_bucket::take_against_refund"),
    ("lost-glance-counts-as-won", "bucket.rs",
     "        Err(_) => Quick::Lost,", "        Err(_) => Quick::Granted(next),",
     "loom_bucket::two_takers_at_a_glance"),
    ("refill-without-moving-the-stamp", "word.rs",
     "let stamp = word.stamp(&self.scale).wrapping_add(ticks);",
     "let stamp = word.stamp(&self.scale); let _ = ticks;",
     "loom_bucket::take_against_refill"),
    ("reset-does-not-clear", "table.rs",
     "limits.freshen(&row, sealed.sequence(), false, now)\n            && step", "now == u64::MAX\n            || step",
     "loom_bucket::reset_against_hit"),
    ("settle-without-second-look", "table.rs",
     "while distance < self.span {\n            let other", "while distance < 0 {\n            let other",
     "loom_insert::two_inserts_of_one_key_whose_first_row_is_freed"),
    ("settle-without-fence", "table.rs",
     "        fence(Ordering::SeqCst);\n        while", "        fence(Ordering::Acquire);\n        while",
     "loom_insert::two_inserts_of_one_key_whose_first_row_is_freed"),
    ("claim-without-swap", "table.rs",
     "Some((place, step(self.key(place), seen, pending).ok()?))",
     "{ let _ = seen; self.key(place).store(pending.0, Ordering::Release); Some((place, pending)) }",
     "loom_insert::two_inserts_of_different_keys_for_one_place"),
    ("pending-of-the-dead-is-waited-for", "table.rs",
     "Look::Pending(place, seen) => Some((place, seen)),", "Look::Pending(..) => None,",
     "loom_insert::a_claimant_that_stopped_blocks_nobody"),
    ("takeover-of-a-row-in-use", "table.rs",
     "if !limits.freshen(&self.row(place, sealed), sealed.sequence(), true, now) {",
     "if !limits.freshen(&self.row(place, sealed), sealed.sequence(), false, now) {",
     "loom_giving_way::prune_against_hit"),
    ("charge-without-looking-at-the-key", "row.rs",
     "match self.key.load(Ordering::Relaxed) == self.seen().0 {", "match self.seen().0 != 0 {",
     "loom_giving_way::look_up_against_giving_way_and_reuse"),
    ("takeover-straight-to-live", "table.rs",
     "let pending = sealed.then_for(State::Pending, hash.print());\n                return Ok(step(self.key(place), sealed, pending).ok().map(|p| (place, p)));",
     "let pending = sealed.then_for(State::Live, hash.print());\n                let _ = step(self.key(place), sealed, pending);\n                return Ok(None);",
     "loom_giving_way::two_takeovers_of_two_rows_for_one_new_key"),
    ("seal-is-never-undone", "row.rs",
     "                    let _ = step(self.key, word, word.then(State::Live));\n", "                    return false;\n",
     "loom_giving_way::a_taker_that_stopped_blocks_nobody"),
    ("sequence-stands-still", "row.rs",
     "KeyWord::new(state, self.sequence() + 1, print)", "KeyWord::new(state, self.sequence(), print)",
     "loom_giving_way::a_taker_that_sleeps_wakes_in_another_life"),
    ("fresh-words-are-all-alike", "bucket.rs",
     "row.replace(at, seen, Word::fresh(incarnation).0)", "row.replace(at, seen, Word::fresh(incarnation * 0).0)",
     "loom_giving_way"),
    ("refusal-gives-nothing-back", "hit.rs",
     "for placed in &self.placed[..taken.cells] {", "for placed in &self.placed[..taken.cells * 0] {",
     "loom_rule::a_hit_whose_second_limit_refuses_against_a_hit"),
    ("give-back-stops-at-a-seal", "hit.rs",
     "        row.steadily(|row| match &placed.cell {\n            Cell::Bucket(bucket) => bucket::refund",
     "        (|f: &mut dyn FnMut(&Row<'_>) -> Result<(), Moved>| f(row))(&mut |row: &Row<'_>| match &placed.cell {\n            Cell::Bucket(bucket) => bucket::refund",
     "loom_giving_way::a_taker_that_stopped_blocks_nobody"),
    ("lost-slot-counts-as-admitted", "window.rs",
     "self.row.replace(self.place(position), tip.seen.0, slot.0).ok()?;",
     "let _ = self.row.replace(self.place(position), tip.seen.0, slot.0);",
     "loom_window::two_takers_one_place"),
    ("only-the-first-window-counts", "window.rs",
     "windows.iter().all(|w| match mixed {", "windows.iter().take(1).all(|w| match mixed {",
     "loom_window::two_windows_two_takers"),
    ("refusal-from-a-torn-look", "window.rs",
     "                if self.is_tip(tip) {\n                    return Ok(None);\n                }\n                continue;",
     "                return Ok(None);",
     "loom_window::two_takers_in_a_ring_that_has_wrapped"),
    ("cost-two-weighs-one", "window.rs",
     "if let Some(entry) = self.put(tip, cost, stamp) {", "if let Some(entry) = self.put(tip, 1, stamp) {",
     "loom_window::cost_two_against_cost_one"),
    ("refund-by-store", "window.rs",
     "if self.row.replace(self.place(position), slot.0, lower.0).is_ok() {",
     "{ self.row.words[self.place(position)].store(lower.0, Ordering::Release);",
     "loom_window"),
    ("live-entry-overwritten", "window.rs",
     "!(full && oldest() == Some(tip.seen.stamp()))", "full && oldest().is_none()",
     "loom_window::carrying_against_a_take"),
    ("taken-slot-not-helped", "window.rs",
     "if seen.0 == 0 || seen.lap() != self.lap(position) {", "if seen.0 == 0 || seen.lap() != 9 {",
     "loom_window::a_slot_taken_against_a_helper_that_moves_the_head"),
    ("idle-ring-not-marked", "window.rs",
     "if self.put(tip, 1, expired).is_some() {", "if expired != tip.position + 1 {",
     "loom_window::an_idle_ring_gives_way_against_its_own_key"),
    ("late-release-frees-another", "permit.rs",
     "row.replace(at + permit.slot, permit.word, next).is_err()",
     "row.replace(at + permit.slot, row.load(at + permit.slot), next).is_err()",
     "loom_rule::release_against_lease_expiry"),
    ("permit-without-swap", "permit.rs",
     "match row.replace(at + slot, seen.0, next.0) {",
     "match { row.words[at + slot].store(next.0, crate::sync::Ordering::Release); Ok::<(), u64>(()) } {",
     "loom_rule::two_takers_one_permit"),
    ("sealed-half-hit-keeps-its-half", "hit.rs",
     "                refused => {\n                    self.give_back(row, &taken, cost, time);",
     "                refused => {\n                    if refused.is_ok() { self.give_back(row, &taken, cost, time); }",
     "loom_giving_way::a_taker_that_stopped_blocks_nobody"),
    ("new-span-forgets-to-count-alone", "fixed.rs",
     "if row.replace(at + 1, spent.count.0, counted.0).is_ok() {\n                return Ok(Some(counted.0));",
     "if { let _ = row.replace(at + 1, spent.count.0, counted.0); true } {\n                return Ok(Some(counted.0));",
     "loom_rule::two_takers_one_fixed_place"),
    ("noted-row-is-dropped", "ledger.rs",
     "if is_busy(idle.then_some(&judge)) || row.check().is_err() {", "if row.check().is_err() {",
     "loom_ledger::a_note_against_prune"),
    ("note-made-whatever-the-row-is-now", "ledger.rs",
     "row.steadily(|row| row.update(at, &mut step)).ok()",
     "match step(row.load(at)) { Step::Write(next, result) => { row.words[at].store(next, crate::sync::Ordering::Release); Some(result) } Step::Keep(result) => Some(result) }",
     "loom_ledger::two_notes_on_one_new_key"),
    ("told-of-later-charges", "hit.rs",
     "self.look_at(placed, row, *left, cost, now, &mut views.views);",
     "let _ = left;\n                self.look_at(placed, row, None, cost, now, &mut views.views);",
     "loom_rule::two_hits_are_told_of_different_units"),
]


def run(tree: pathlib.Path, model: str) -> bool:
    """Whether the model passes. A build that fails is an error of this list."""
    command = ["cargo", "test", "--release", "-p", "tidegate-core", "--lib",
               "--target-dir", str(ROOT / "target" / "mutants")]
    env = {**os.environ, "RUSTFLAGS": "--cfg loom -C debug-assertions -A warnings"}
    built = subprocess.run([*command, "--no-run"], cwd=tree, env=env, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"does not build:\n{built.stderr[-2000:]}")
    try:
        result = subprocess.run([*command, "--", f"tests::{model}"], cwd=tree, env=env,
                                capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return False
    if "running 0 tests" in result.stdout:
        sys.exit(f"no model is called {model}")
    return result.returncode == 0


def main() -> None:
    chosen = [m for m in MUTANTS if all(word in m[0] for word in sys.argv[1:])]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        ignore = shutil.ignore_patterns("target", ".git", "node_modules")
        shutil.copytree(ROOT, tree, ignore=ignore)
        for name, file, before, after, model in chosen:
            path = tree / "core" / "src" / file
            whole = path.read_text()
            if whole.count(before) != 1:
                sys.exit(f"{name}: the line to break stands {whole.count(before)} times in {file}")
            path.write_text(whole.replace(before, after))
            caught = not run(tree, model)
            path.write_text(whole)
            print(f"{'caught  ' if caught else 'SURVIVED'}  {name}  ({model})", flush=True)
            if not caught:
                survivors.append(name)
    print(f"mutants: {len(chosen)} broken on purpose, {len(chosen) - len(survivors)} caught")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
