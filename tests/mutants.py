#!/usr/bin/env python3
"""Breaks the engine by hand, one line at a time, and wants the model named beside it to fail.

A model that passes on broken code proves nothing. Each entry below is one break: the file, what is
replaced by what, and the loom model that must notice. Run from the project's root:

    python3 tests/mutants.py            all of them (about twenty minutes on two cores)
    python3 tests/mutants.py settle     those whose name contains a word
    python3 tests/mutants.py --check    only whether each line to break is still there
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
    ("swap-split-in-two", "table/row.rs",
     "        self.words[at].compare_exchange(seen, next, Ordering::Release, "
     "Ordering::Acquire).map(drop)",
     "        let now = self.words[at].load(Ordering::Acquire);\n"
     "        if now != seen { return Err(now); }\n"
     "        self.words[at].store(next, Ordering::Release);\n        Ok(())",
     "loom_bucket::two_takers_one_token"),
    ("lost-swap-counts-as-won", "table/row.rs",
     "Err(newer) => seen = newer,", "Err(_) => return Ok(result),",
     "loom_bucket::take_against_refund"),
    ("lost-coarse-take-counts-as-won", "algorithm/bucket.rs",
     "        Err(_) => FastOutcome::Lost,", "        Err(_) => FastOutcome::Granted(next),",
     "loom_bucket::two_takers_by_the_coarse_clock"),
    ("refill-without-moving-the-stamp", "algorithm/bucket/word.rs",
     "        Word::pack(scale, false, tick, tokens)\n    }\n\n    /// Takes what is there",
     "        Word::pack(scale, false, word.stamp(scale), tokens)\n    }\n\n"
     "    /// Takes what is there",
     "loom_bucket::two_takers_after_a_refill"),
    ("fast-refill-without-moving-the-stamp", "algorithm/bucket/word/fast.rs",
     "        let stamp = scale.stamp_bits(tick);\n        let moved",
     "        let stamp = scale.stamp_bits(word.stamp(scale));\n        let moved",
     "loom_bucket::two_takers_after_a_refill"),
    ("word-ahead-is-a-refusal", "algorithm/bucket.rs",
     "        Charge::Recheck | Charge::Ahead => take_rechecked(bucket, Word(seen), cost, time),",
     "        Charge::Recheck | Charge::Ahead => WordStep::Keep(Take::Denied(Word(seen))),",
     "loom_bucket::an_old_reading_against_a_hit_from_full"),
    ("word-ahead-is-full", "algorithm/bucket.rs",
     "(word, bucket.charge(word, cost, time.now()));",
     "(word, bucket.charge(Word::fresh(1), cost, time.now()));",
     "loom_bucket::an_old_reading_against_a_hit_from_full"),
    ("another-scale-is-read-as-ones-own", "algorithm/bucket/word.rs",
     "word.0 & SCALE_MASK == self.scale.header", "!word.is_fresh()",
     "loom_bucket::two_takers_by_different_numbers"),
    ("reset-does-not-clear", "table.rs",
     "limits.reset_words(&row, sealed.sequence(), false, now)\n            && step",
     "now == u64::MAX\n            || step",
     "loom_bucket::reset_against_hit"),
    ("settle-without-second-look", "table.rs",
     "while distance < self.span {\n            let other",
     "while distance < 0 {\n            let other",
     "loom_insert::two_inserts_of_one_key_whose_first_row_is_freed"),
    ("settle-without-fence", "table.rs",
     "        fence(Ordering::SeqCst);\n        while",
     "        fence(Ordering::Acquire);\n        while",
     "loom_insert::two_inserts_of_one_key_whose_first_row_is_freed"),
    ("claim-without-swap", "table.rs",
     "Some((place, step(self.key(place), seen, pending).ok()?))",
     "{ let _ = seen; self.key(place).store(pending.0, Ordering::Release); "
     "Some((place, pending)) }",
     "loom_insert::two_inserts_of_different_keys_for_one_place"),
    ("pending-of-the-dead-is-waited-for", "table.rs",
     "Lookup::Pending(place, seen) => Some((place, seen)),", "Lookup::Pending(..) => None,",
     "loom_insert::a_claimant_that_stopped_blocks_nobody"),
    ("takeover-of-a-row-in-use", "table.rs",
     "if !limits.reset_words(&self.row(place, sealed), sealed.sequence(), true, now) {",
     "if !limits.reset_words(&self.row(place, sealed), sealed.sequence(), false, now) {",
     "loom_eviction::prune_against_hit"),
    ("charge-without-looking-at-the-key", "table/row.rs",
     "match self.key.load(Ordering::Relaxed) == self.seen().0 {", "match self.seen().0 != 0 {",
     "loom_eviction::look_up_against_eviction_and_reuse"),
    ("takeover-straight-to-live", "table.rs",
     "let pending = sealed.then_for(State::Pending, hash.print());\n"
     "                return Ok(step(self.key(place), sealed, pending).ok().map(|p| (place, p)));",
     "let pending = sealed.then_for(State::Live, hash.print());\n"
     "                let _ = step(self.key(place), sealed, pending);\n"
     "                return Ok(None);",
     "loom_eviction::two_takeovers_of_two_rows_for_one_new_key"),
    ("seal-is-never-undone", "table/row.rs",
     "                    let _ = step(self.key, word, word.then(State::Live));\n",
     "                    return false;\n",
     "loom_rule::a_record_of_two_limits_against_prune"),
    ("sequence-stands-still", "table/row.rs",
     "KeyWord::new(state, self.sequence() + 1, print)",
     "KeyWord::new(state, self.sequence(), print)",
     "loom_eviction::a_taker_that_sleeps_wakes_in_another_life"),
    ("fresh-words-are-all-alike", "algorithm/bucket.rs",
     "row.replace(at, seen, Word::fresh(incarnation).0)",
     "row.replace(at, seen, Word::fresh(incarnation * 0).0)",
     "loom_eviction"),
    ("refusal-gives-nothing-back", "limits/charge.rs",
     "in self.placed[..taken.cells].iter().zip(&taken.written) {",
     "in self.placed[..taken.cells * 0].iter().zip(&taken.written) {",
     "loom_rule::a_hit_whose_second_limit_refuses_against_a_hit"),
    ("undone-after-a-reset", "algorithm/cell.rs",
     "        row.check()?;\n        each_algorithm!(&self.cell, cell => "
     "cell.undo(row, at, taken, written, cost, time))",
     "        row.steadily(|row| each_algorithm!(&self.cell, cell => "
     "cell.undo(row, at, taken, written, cost, time)))",
     "loom_receipt::a_half_hit_undone_against_a_reset_and_a_hit"),
    ("half-hit-keeps-its-half-after-an-undone-seal", "table/row.rs",
     "Err(Moved) if self.undo_eviction() => continue,",
     "Err(Moved) if self.seen().0 == 0 => continue,",
     "loom_eviction::a_taker_that_stopped_blocks_nobody"),
    ("reset-looks-like-an-undone-eviction", "table/row.rs",
     "KeyWord::new(State::Sealed, self.sequence() + 2, self.print().max(1))",
     "KeyWord::new(State::Sealed, self.sequence() + 1, self.print().max(1))",
     "loom_receipt::a_half_hit_undone_against_a_reset_and_a_hit"),
    ("given-back-whatever-the-key-word", "limits/receipt.rs",
     "(row.place(), row.seen()) == (self.place, self.key)", "row.place() == self.place",
     "loom_receipt::a_reservation_given_back_against_a_reset_and_a_hit"),
    ("given-back-without-a-last-look", "table/row.rs",
     "        let mut seen = self.load(at);\n        loop {\n            self.check()?;",
     "        self.check()?;\n        let mut seen = self.load(at);\n        loop {",
     "loom_receipt::a_reservation_given_back_against_a_reset_and_a_hit"),
    ("horizon-judged-before-the-seal-only", "eviction.rs",
     "let judge = |placed: &Placed| self.demand(now).is_met_by(placed, row, now);",
     "let judge = |placed: &Placed| placed.is_idle(row, now);",
     "loom_eviction::numbers_introduced_against_eviction"),
    ("numbers-introduced-without-a-fence", "eviction.rs",
     "        fence(Ordering::SeqCst);\n    }\n\n    fn raise", "    }\n\n    fn raise",
     "loom_eviction::numbers_introduced_against_eviction"),
    ("seal-without-a-fence", "table.rs",
     "        fence(Ordering::SeqCst);\n        if !limits.reset_words",
     "        if !limits.reset_words",
     "loom_eviction::numbers_introduced_against_eviction"),
    ("numbers-introduced-without-their-horizon", "eviction.rs",
     "        self.raise(LONGEST, limits.horizon());\n", "",
     "loom_eviction::numbers_introduced_against_prune"),
    ("numbers-introduced-by-their-horizon-alone", "eviction.rs",
     "        self.add_digest(limits.digest());\n",
     "        if limits.digest() == self.digest { self.add_digest(limits.digest()); }\n",
     "loom_eviction::numbers_introduced_against_prune"),
    ("lost-slot-counts-as-admitted", "algorithm/window.rs",
     "self.row.replace(at, tip.seen.0, slot.0).ok()?;",
     "let _ = self.row.replace(at, tip.seen.0, slot.0);",
     "loom_window::two_takers_one_place"),
    ("only-the-first-window-counts", "algorithm/window/count.rs",
     "        for window in windows {\n            let Some(rest)",
     "        for window in windows.iter().take(1) {\n            let Some(rest)",
     "loom_window::two_windows_two_takers"),
    ("one-entry-looked-at-twice", "algorithm/window/count.rs",
     "        1 => u64::from(!is_inside(0)),\n", "",
     "loom_window::a_hit_that_searches_a_log_against_two_takers"),
    ("refusal-from-a-torn-look", "algorithm/window.rs",
     "Verdict::Full if self.is_tip(tip) => return Ok(None),",
     "Verdict::Full if tip.position != u64::MAX => return Ok(None),",
     "loom_window::two_takers_in_a_ring_that_has_wrapped"),
    ("cost-two-weighs-one", "algorithm/window.rs",
     "if let Some(entry) = self.put(tip, cost, stamp::of(time.now())) {",
     "if let Some(entry) = self.put(tip, 1, stamp::of(time.now())) {",
     "loom_window::cost_two_against_cost_one"),
    ("lowered-by-store", "algorithm/window.rs",
     "        self.row.replace(self.place(entry.position), slot.0, lower.0).ok().map(|()| units)",
     "        self.row.words[self.place(entry.position)].store(lower.0, Ordering::Release);\n"
     "        Some(units)",
     "loom_window::two_refunds_against_a_full_ring"),
    ("overwritten-units-are-lost", "algorithm/window.rs",
     "                if room == Room::Full {\n"
     "                    self.add_to_oldest(tip.seen.weight());\n                }\n", "",
     "loom_window::two_takes_by_a_shorter_per_in_a_ring_full_of_live_entries"),
    ("live-entry-overwritten", "algorithm/window.rs",
     "            let room = if is_live { self.room(",
     "            let room = if is_live && cost == 0 { self.room(",
     "loom_window::carrying_against_a_take"),
    ("taken-slot-not-helped", "algorithm/window.rs",
     "if seen.0 == 0 || seen.lap() != lap {", "if seen.0 == 0 || seen.lap() != 9 {",
     "loom_window::a_slot_taken_against_a_helper_that_moves_the_head"),
    ("idle-ring-not-marked", "algorithm/window.rs",
     "if self.put(tip, 1, expired).is_some() {", "if expired != tip.position + 1 {",
     "loom_window::an_idle_ring_is_evicted_against_its_own_key"),
    ("late-release-frees-another", "algorithm/permit.rs",
     "        row.replace(at + permit.slot, permit.word, next.0).ok()?;",
     "        row.replace(at + permit.slot, row.load(at + permit.slot), next.0).ok()?;",
     "loom_rule::a_release_of_before_a_reset_against_a_taker"),
    ("permit-judged-by-the-callers-lease", "algorithm/permit.rs",
     "if slot.code() == self.code { self.lease_us } else { lease_of(slot.code()) }",
     "self.lease_us",
     "loom_rule::a_renewal_against_a_taker_with_a_shorter_lease"),
    ("free-slots-outlive-their-row", "algorithm/permit.rs",
     "        self.with(MADE_FRESH | (incarnation & (MADE_FRESH - 1)), 0)",
     "        self.with(self.start() + incarnation * 0, 0)",
     "loom_rule::a_taker_of_a_permit_against_eviction"),
    ("permit-without-swap", "algorithm/permit.rs",
     "if row.replace(at + slot, seen.0, taken.0).is_ok() {",
     "if { row.words[at + slot].store(taken.0, Ordering::Release); true } {",
     "loom_rule::two_takers_one_permit"),
    ("sealed-half-hit-keeps-its-half", "limits/charge.rs",
     "                refused => {\n                    self.give_back(row, taken, cost, time);",
     "                refused => {\n"
     "                    if refused.is_ok() { self.give_back(row, taken, cost, time); }",
     "loom_eviction::a_taker_that_stopped_blocks_nobody"),
    ("new-span-forgets-to-count-alone", "algorithm/fixed.rs",
     "if row.replace(at + 1, spent.count.0, counted.0).is_ok() {\n"
     "                return Ok(Some(counted.0));",
     "if { let _ = row.replace(at + 1, spent.count.0, counted.0); true } {\n"
     "                return Ok(Some(counted.0));",
     "loom_rule::two_takers_one_fixed_place"),
    ("span-closed-before-its-count", "algorithm/fixed.rs",
     "            if row.replace(at + 1, count, closed.0).is_ok()\n"
     "                && row.replace(at, span.0, closed.0).is_ok()\n",
     "            if row.replace(at, span.0, closed.0).is_ok() && { let _ = row.replace(at + 1, "
     "count, closed.0); true }\n",
     "loom_eviction::a_fixed_charge_by_new_numbers_against_prune"),
    ("charged-while-it-is-closed", "algorithm/fixed.rs",
     "let open = running && !closing && !", "let _ = closing;\n        let open = running && !",
     "loom_eviction::a_fixed_charge_by_new_numbers_against_prune"),
    ("noted-row-is-dropped", "ledger.rs",
     "if is_busy(idle.then_some(&judge)) || row.check().is_err() {", "if row.check().is_err() {",
     "loom_ledger::a_note_against_prune"),
    ("note-made-whatever-the-row-is-now", "ledger.rs",
     "row.steadily(|row| row.update(at, &mut step)).ok()",
     "match step(row.load(at)) { WordStep::Write(next, result) => { row.words[at].store(next, "
     "crate::sync::Ordering::Release); Some(result) } WordStep::Keep(result) => Some(result) }",
     "loom_ledger::two_notes_on_one_new_key"),
    ("told-of-later-charges", "limits/charge.rs",
     "placed.inspect(row, *written, cost, now, &mut statuses.each);",
     "let _ = written;\n                placed.inspect(row, None, cost, now, &mut statuses.each);",
     "loom_rule::two_hits_are_told_of_different_units"),
    ("retired-told-after-it-is-counted", "storage/retired.rs",
     "    retired.store(1, Ordering::Relaxed);\n",
     "    generation.fetch_add(1, Ordering::Release);\n    retired.store(1, Ordering::Relaxed);\n"
     "    return;\n",
     "loom_retired::the_one_event_is_told_once"),
    ("retired-counted-without-release", "storage/retired.rs",
     "generation.fetch_add(1, Ordering::Release);", "generation.fetch_add(1, Ordering::Relaxed);",
     "loom_retired::the_one_event_is_told_once"),
    ("retired-word-not-set", "storage/retired.rs",
     "    retired.store(1, Ordering::Relaxed);\n", "    let _ = retired;\n",
     "loom_retired::a_hit_after_the_new_table_has_the_name_notices"),
    ("retired-not-counted", "storage/retired.rs",
     "    generation.fetch_add(1, Ordering::Release);\n", "    let _ = generation;\n",
     "loom_retired::an_opener_finds_the_name_gone_or_notices"),
]


def run(tree: pathlib.Path, model: str) -> bool:
    """Whether the model passes. A build that fails is an error of this list."""
    command = ["cargo", "test", "--release", "-p", "tidegate-core", "--lib",
               "--target-dir", str(ROOT / "target" / "mutants")]
    env = {**os.environ, "RUSTFLAGS": "--cfg loom -C debug-assertions -A warnings"}
    built = subprocess.run([*command, "--no-run"], cwd=tree, env=env, capture_output=True,
                           text=True)
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


def check() -> None:
    """Each line to break stands where the list says, once."""
    for name, file, before, _, _ in MUTANTS:
        found = (ROOT / "core" / "src" / file).read_text().count(before)
        if found != 1:
            sys.exit(f"{name}: the line to break stands {found} times in {file}")
    print(f"mutants: all {len(MUTANTS)} lines to break are there")


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        return check()
    check()
    chosen = [m for m in MUTANTS if all(word in m[0] for word in sys.argv[1:])]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        ignore = shutil.ignore_patterns("target", ".git", "node_modules")
        shutil.copytree(ROOT, tree, ignore=ignore)
        for name, file, before, after, model in chosen:
            path = tree / "core" / "src" / file
            whole = path.read_text()
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
