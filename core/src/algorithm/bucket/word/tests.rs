//! The word against exact arithmetic: what is there, what is granted, and when.

use super::scale::{FILLS, YEAR};
use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// Numbers of every size up to a most.
fn up_to(most: u64) -> impl Strategy<Value = u64> {
    (1..=most, 0u32..35).prop_map(|(number, down)| (number >> down).max(1))
}

/// Times of every size.
fn any_time() -> impl Strategy<Value = u64> {
    (any::<u64>(), 1u32..64).prop_map(|(time, down)| time >> down)
}

fn any_bucket() -> impl Strategy<Value = (u64, u64, u64)> {
    (up_to(1_000_000_000), up_to(366 * 86_400_000), prop::option::of(up_to(1_000_000_000)))
        .prop_map(|(max, per_ms, burst)| (max, per_ms * 1_000_000, burst.unwrap_or(max)))
}

/// What a bucket holds, between two exact bounds. A token is `per` parts, so that `max` parts are
/// refilled in a nanosecond and nothing is ever rounded.
#[derive(Clone, Copy, Debug)]
struct Exact {
    max: i128,
    per: i128,
    burst: i128,
    /// With all that charges may have lost, and without.
    low: i128,
    high: i128,
    at: u64,
    charges: i128,
}

impl Exact {
    fn full((max, per, burst): (u64, u64, u64), at: u64) -> Exact {
        let (max, per, burst) = (i128::from(max), i128::from(per), i128::from(burst));
        Exact { max, per, burst, low: burst * per, high: burst * per, at, charges: 0 }
    }

    fn pass(&mut self, now: u64) {
        let refilled = self.max * i128::from(now - self.at);
        let full = self.burst * self.per;
        (self.low, self.high) = ((self.low + refilled).min(full), (self.high + refilled).min(full));
        self.at = now;
    }

    /// What one charge may lose: 1/1000 token, or 10^-7 of a deep bucket.
    fn loss(&self) -> i128 {
        let deep = self.burst * self.per / 10_000_000 + 1;
        if self.burst > 100_000 { deep } else { self.per / 1000 + 1 }
    }

    /// By how much a token may come early: a quantum for each charge, where a tick refills a token.
    fn early(&self, bucket: &Bucket) -> i128 {
        if bucket.is_coarse { self.charges * self.loss() } else { 0 }
    }

    fn charge(&mut self, tokens: u64) {
        let cost = i128::from(tokens) * self.per;
        self.low = (self.low - cost).max(0) - self.loss();
        self.high = (self.high - cost).max(0);
        self.charges += 1;
    }
}

/// Parts of a token, from quanta.
fn parts(bucket: &Bucket, exact: &Exact, quanta: i64) -> i128 {
    i128::from(quanta) * exact.per / i128::from(bucket.scale.quanta)
}

fn content(bucket: &Bucket, word: Word, now: u64) -> i64 {
    match bucket.level(word, Nanos(now)) {
        Level::Full => bucket.full as i64,
        Level::Partial(line) => line.content,
        Level::Ahead(base) => base,
    }
}

/// The fast path says what the general one says, to the bit.
fn assert_fast_is_general(bucket: &Bucket, word: Word, now: u64) -> Result<(), TestCaseError> {
    let general = match bucket.charge(word, 1, now) {
        Charge::Recheck => Charge::Denied,
        general => general,
    };
    if let Some(fast) = bucket.fast_charge(word, now, bucket.now())
        && general != Charge::Ahead
    {
        prop_assert_eq!(fast, general, "{:?} at {} by {:?}", word, now, bucket);
    }
    // Coarse time has passed; the answer must be that of every moment until a second later.
    if let Some(fast) = bucket.fast_charge(word, now, bucket.coarse()) {
        for late in [0, 1, bucket.scale.tick.nanos.0, COARSE_MAX_AGE / 2, COARSE_MAX_AGE] {
            let then = now.saturating_add(late);
            let Charge::Granted(later) = bucket.charge(word, 1, then) else {
                let denied = bucket.charge(word, 1, then) != Charge::Ahead;
                prop_assert!(!denied || fast == Charge::Denied, "{:?} at {}", word, then);
                continue;
            };
            let Charge::Granted(by_coarse) = fast else {
                return Err(TestCaseError::fail(format!(
                    "{word:?} denied at {now}, not at {then}"
                )));
            };
            let (now, then) = (content(bucket, by_coarse, then), content(bucket, later, then));
            prop_assert!(now.abs_diff(then) <= 1, "{:?}: {} and {}", word, now, then);
        }
    }
    Ok(())
}

#[test]
fn fields_neither_overlap_nor_leave_gaps() {
    for class in 1..8 {
        for tick in 0..16 {
            let scale = Scale::new(class, tick);
            let stamp = scale.stamp_mask << scale.token_bits;
            assert_eq!(stamp & scale.token_mask, 0);
            assert_eq!(stamp | scale.token_mask, (1 << PAYLOAD_BITS) - 1);
            assert_eq!(scale.header & !SCALE_MASK, 0);
            let word = Word::pack(&scale, true, Ticks(5), 7);
            assert_eq!(
                (word.scale(), word.stamp(&scale), word.tokens(&scale)),
                (scale, Ticks(5), 7)
            );
            assert!(word.is_whole() && !word.is_fresh());
        }
    }
    assert!(Word::fresh(u64::MAX).is_fresh() && Word::fresh(0).0 != 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn grants_what_exact_arithmetic_grants(
        numbers in any_bucket(),
        start in any_time(),
        steps in prop::collection::vec((0u64..1 << 50, 0u32..50, 1u64..5, 0u32..3), 1..60),
    ) {
        let (max, per, burst) = numbers;
        let Some(bucket) = Bucket::new(max, per, burst) else { return Ok(()) };
        let (mut word, mut now) = (Word::fresh(1), start >> 1);
        let mut exact = Exact::full(numbers, now);
        for (step, down, cost, waits) in steps {
            let reading = bucket.reading(word, now);
            // By a random step, or to where the answer changes.
            now = match waits {
                0 => now.saturating_add(reading.wait(cost.min(burst))),
                1 => now.saturating_add(reading.wait(cost.min(burst)).saturating_sub(1)),
                // A word that has wrapped looks younger than it is.
                _ => now.saturating_add((step >> down).min(bucket.scale.most_lag().0 / 64)),
            };
            exact.pass(now);
            assert_fast_is_general(&bucket, word, now)?;
            let cost = cost.min(burst);
            let wanted = i128::from(cost) * exact.per;
            match bucket.charge(word, cost, now) {
                Charge::Granted(next) => {
                    prop_assert!(
                        exact.high + exact.early(&bucket) >= wanted,
                        "I1: {bucket:?} {word:?} at {now}: {exact:?}"
                    );
                    exact.charge(cost);
                    // I13: no charge is later than its stamp's tick, or 1,000 of a deep bucket's.
                    let lag = next
                        .lag(&bucket.scale, Nanos(now) + bucket.scale.unit.nanos)
                        .expect("not ahead");
                    prop_assert!(lag < bucket.scale.delay.max(Ticks(2)), "I13: {lag:?}");
                    word = next;
                }
                Charge::Denied | Charge::Recheck => {
                    prop_assert!(exact.low < wanted, "I3: {bucket:?} {word:?} at {now}: {exact:?}");
                    let wait = bucket.reading(word, now).wait(cost);
                    let at = |t| matches!(bucket.charge(word, cost, t), Charge::Granted(_));
                    prop_assert!(
                        wait > 0 && at(now.saturating_add(wait)) && !at(now + wait - 1),
                        "I5: {word:?} at {now} waits {wait}"
                    );
                }
                Charge::Ahead => prop_assert!(false, "the clock went on"),
            }
            let found = parts(&bucket, &exact, content(&bucket, word, now));
            prop_assert!(
                found <= exact.high + exact.early(&bucket),
                "I1: {word:?} {found} of {exact:?}"
            );
            prop_assert!(
                found + exact.per / i128::from(bucket.scale.quanta) >= exact.low,
                "I3: {word:?} {found} of {exact:?}"
            );
        }
    }

    /// Whatever came before, a bucket that is full grants its size at one moment, to the token.
    #[test]
    fn a_full_bucket_grants_exactly_its_size(
        max in up_to(1_000_000), per_ms in up_to(366 * 86_400_000), burst in 1u64..200,
        start in any_time(), apart in 0u64..2_000,
    ) {
        let Some(bucket) = Bucket::new(max, per_ms * 1_000_000, burst) else { return Ok(()) };
        let (mut word, start) = (Word::fresh(0), start >> 1);
        for hit in 0..burst {
            // At one moment, and within less than a token's time.
            let now =
                start + hit * apart.min(bucket.rate.time_ceil(bucket.scale.quanta).0 / burst / 2);
            let Charge::Granted(next) = bucket.charge(word, 1, now) else {
                return Err(TestCaseError::fail(format!(
                    "I2: hit {hit} of {burst}, {word:?} of {bucket:?}"
                )));
            };
            word = next;
        }
        prop_assert_eq!(bucket.reading(word, start).tokens(), 0);
    }

    /// A limit that refills no faster and holds no more finds no more than was there. Any other
    /// finds no more than it would have refilled itself since the last charge. None is denied for
    /// longer than its own fill.
    #[test]
    fn a_change_of_numbers_grants_nothing(
        numbers in any_bucket(), others in any_bucket(), start in any_time(),
        steps in prop::collection::vec((0u64..1 << 50, 0u32..50, 1u64..2_000_000, 0u32..21), 1..40),
        after in any_time(),
    ) {
        let made = |(max, per, burst)| Bucket::new(max, per, burst);
        let (Some(writer), Some(reader)) = (made(numbers), made(others)) else { return Ok(()) };
        let (mut word, mut now, mut charged) = (Word::fresh(1), start >> 1, start >> 1);
        for (step, down, cost, small) in steps {
            now = now.saturating_add(step >> down);
            if let Charge::Granted(next) =
                writer.charge(word, (cost >> small).clamp(1, numbers.2), now)
            {
                (word, charged) = (next, now);
            }
        }
        if word.is_fresh() {
            return Ok(());
        }
        let now = charged.saturating_add(after >> 8);
        let tick = u128::from(writer.scale.tick.nanos.0);
        // A word that has wrapped looks younger than it is.
        prop_assume!(u128::from(now - charged) < u128::from(writer.scale.most_lag().0) * tick);
        let found = content(&reader, word, now).max(0) as u128 * 1_000_000
            / u128::from(reader.scale.quanta);
        // In millionths of a token.
        let was = |at: u64| {
            content(&writer, word, at).max(0) as u128 * 1_000_000 / u128::from(writer.scale.quanta)
        };
        let refilled =
            |nanos: u128| nanos * u128::from(others.0) * 1_000_000 / u128::from(others.1);
        let no_faster = u128::from(others.0) * u128::from(numbers.1)
            <= u128::from(numbers.0) * u128::from(others.1);
        let slack = 1_000_000 / u128::from(writer.scale.quanta) + 1;
        if no_faster && others.2 <= numbers.2 {
            prop_assert!(
                found <= was(now) + slack,
                "I13: {found} of {} {word:?} by {reader:?}",
                was(now)
            );
        }
        let ticks = u128::from(writer.scale.delay.0) * tick;
        let most = was(charged) + refilled(u128::from(now - charged) + ticks);
        prop_assert!(found <= most + slack, "I13: {found} of {most}, {word:?} by {reader:?}");
        let least = refilled(u128::from(now - charged).saturating_sub(ticks))
            .min(u128::from(others.2) * 1_000_000);
        prop_assert!(
            found + 1_000_000 / u128::from(reader.scale.quanta) + 1 >= least,
            "I13: {found}, not {least}: {word:?} by {reader:?}"
        );
    }

    /// For any bits at all, at any time: no overflow, and the two paths agree.
    #[test]
    fn any_bits_are_read_the_same_by_both_paths(
        numbers in any_bucket(), bits: u64, now: u64, other in any_time(), kind in 0u32..3,
        cost in 1u64..100,
    ) {
        let (max, per, burst) = numbers;
        let Some(bucket) = Bucket::new(max, per, burst) else { return Ok(()) };
        let own = Word(bits & !SCALE_MASK | bucket.scale.header);
        // Stamps a little before a moment too, in the bucket's own scale and in any.
        let near = |word: Word, now: u64| {
            let scale = word.scale();
            let stamp = scale.tick_of(Nanos(now)).0.wrapping_sub(bits >> 50 >> (bits % 14));
            let stamp = scale.stamp_bits(Ticks(stamp));
            Word(word.0 & !(scale.stamp_mask << scale.token_bits) | stamp)
        };
        let any = Word(bits | 1 << 60);
        let words = [(own, now), (own, other), (Word(bits), now), (Word(bits), other)];
        let nears = [
            (near(own, now), now),
            (near(own, other), other),
            (near(any, now), now),
            (near(any, other), other),
        ];
        for (word, now) in words.into_iter().chain(nears) {
            assert_fast_is_general(&bucket, word, now)?;
            let cost = cost.min(burst);
            let next = match kind {
                0 => bucket.refund(word, MilliTokens(1000 * cost), now).unwrap_or(word),
                1 => bucket.repaired(word, now),
                _ => match bucket.drain(word, cost, now) {
                    Charge::Granted(next) => next,
                    _ => bucket.repaired(word, now),
                },
            };
            let found = content(&bucket, word, now).max(0);
            if kind == 0 {
                let due = (found + bucket.quanta(cost)).min(bucket.full as i64);
                prop_assert!(content(&bucket, next, now) + 1 >= due, "I6: {word:?} {next:?}");
            }
            let reading = bucket.reading(next, now);
            prop_assert!(
                reading.tokens() <= burst
                    && reading.wait(burst)
                        <= bucket.fill.0.saturating_add(
                            (next.scale().delay.0 + 2) * next.scale().tick.nanos.0
                                + 1000 * next.scale().unit.nanos.0
                        )
            );
            let _ = (bucket.is_idle(next, now), next.untouched_for(now), format!("{next:?}"));
        }
    }
}

#[test]
fn scales_are_as_fine_and_as_long_as_promised() {
    let tick =
        |max, per, burst| Bucket::new(max, per, burst).map(|b| (b.scale.quanta, b.tick_length().0));
    assert_eq!(tick(20, 60 * SECOND, 20), Some((1000, 100_000)));
    assert_eq!(tick(1, 60 * SECOND, 1), Some((1000, 10_000)));
    assert_eq!(tick(2_000_000, 60 * SECOND, 2_000_000), Some((10, 100_000_000)));
    assert_eq!(tick(1_000_000, SECOND, 1_000), Some((1000, 100_000)));
    assert_eq!(tick(1, 366 * 86_400 * SECOND, 1_000_000_000), None, "a fill of a billion years");
    assert_eq!(tick(1_000_000_000, 1_000_000, 1), None, "a million tokens in a nanosecond");
    for (max, per_ms, burst) in
        [(1, 1, 1), (1_000_000_000, 1, 1_000_000_000), (7, 366 * 86_400_000, 9)]
    {
        let bucket = Bucket::new(max, per_ms * 1_000_000, burst).unwrap();
        let apart = u128::from(bucket.scale.most_lag().0) * u128::from(bucket.tick_length().0);
        assert!(apart >= YEAR.min(FILLS * u128::from(bucket.fill.0)), "I9: {bucket:?}");
    }
}

#[test]
fn a_fresh_hit_is_back_after_exactly_its_time() {
    for (max, per_s, burst) in [(1, 60, 1), (20, 60, 20), (1, 86_400, 5), (7, 1, 3)] {
        for start in [0, 1, 999, 1_234_567, 12_345_678_901, 1 << 44] {
            let bucket = Bucket::new(max, per_s * SECOND, burst).unwrap();
            let Charge::Granted(word) = bucket.charge(Word::fresh(0), 1, start) else { panic!() };
            let (reading, token) = (bucket.reading(word, start), (per_s * SECOND).div_ceil(max));
            assert_eq!(reading.due(burst), token);
            let wait = reading.wait(burst);
            assert!(wait >= token && wait < token + bucket.scale.unit.nanos.0, "{wait} of {token}");
        }
    }
}

#[test]
fn a_stamp_ahead_of_the_clock_is_mended_without_a_gain() {
    let bucket = Bucket::new(20, 60 * SECOND, 20).unwrap();
    for start in [3600 * SECOND, 3600 * SECOND + 77_777] {
        let Charge::Granted(word) = bucket.charge(Word::fresh(0), 15, start) else { panic!() };
        assert_eq!(bucket.charge(word, 1, SECOND), Charge::Ahead);
        let repaired = bucket.repaired(word, SECOND);
        assert_eq!(bucket.reading(repaired, SECOND).tokens(), 5);
        assert_eq!(bucket.reading(repaired, SECOND).wait(20), 45 * SECOND);
    }
}

#[test]
fn i13_a_fast_reader_of_a_deep_slow_word_is_not_denied_for_its_ticks() {
    let writer = Bucket::new(1, 600 * SECOND, 200_000).unwrap();
    let reader = Bucket::new(1_000_000_000, 1_000_000, 100_000).unwrap();
    let start = 1_000 * SECOND;
    let Charge::Granted(word) = writer.charge(Word::fresh(0), 1, start) else { panic!() };
    for ticks in [1, 500, 922, 923, 950, 1_001, 1_002, 5_000] {
        let now = start + ticks * writer.tick_length().0;
        assert_eq!(reader.reading(word, now).tokens(), 100_000, "after {ticks} ticks");
    }
}
