//! One key's token bucket, in one word.
//!
//! ```text
//!  63   62..60   59..56     55 … b        b−1 … 0
//! ┌────┬────────┬────────┬─────────────┬─────────────────┐
//! │ W  │ class  │  tick  │   stamp     │ tokens + offset │     class 0: fresh
//! └────┴────────┴────────┴─────────────┴─────────────────┘
//! ```
//!
//! Tokens and time change together or not at all, so the word is the whole truth about the key:
//! no thread locks, and a reader may act on a copy.
//!
//! **The word names its own scale.** `class` fixes how many bits `b` the tokens have, and the
//! offset 2^(b−4) that is added to them. It also fixes how many quanta a token has: 1,000, or fewer
//! for buckets above 100,000 tokens. A tick is 10^tick ns. So any reader can decode the word,
//! whatever limit wrote it.
//!
//! **The stamp is the last tick before the last charge** by that charge's reading of the clock. It
//! is never ahead of that reading, and never more than `delay` ticks before it. The delay is 1
//! tick, or 1,000 for fewer quanta. What was refilled since is computed by the reader, at the
//! reader's own rate. So a change of numbers applies from the last charge on, and slower numbers
//! never find more than was there.
//!
//! ```text
//! content(now) = min(full, t + ⌊(now − stamp)·rate⌋)        t = tokens; may be negative
//!                at least ⌊(now − stamp − delay)·rate⌋      where t is negative
//! ```
//!
//! The tokens are negative when a charge took what was refilled between the stamp and the charge. A
//! reader with a slower rate would have to work off that debt; the second line ends the debt after
//! `delay`, since by then every charge that the stamp stands for has happened. For the writer's own
//! rate it changes nothing.
//!
//! **W** says that the content was a *whole* number of tokens at a known moment in the stamp's
//! tick. The tokens then hold that number, and their remainder (below one token) counts the parts
//! of the tick that had passed, in units of tick/quanta. So a bucket that was full between two
//! ticks loses nothing: it grants exactly its size, and its next token comes when it is due.
//!
//! **Rounding.** A charge moves the stamp to the last tick and rounds what was refilled until then
//! down: less than one quantum is lost, none is gained. The moment of W is rounded up to its unit
//! (100 ns for `20/min`). If that is the next tick, so is the stamp: ahead of the clock by less
//! than a unit, with nothing refilled in it. Where a tick refills a whole token there is no W, and
//! a token may come early by less than a quantum.
//!
//! **Wrap.** Stamps count modulo 2^(56−b) ticks. A stamp in the quarter of that range after the
//! present tick is *ahead*: a racing thread's clock, a clock fault, or a word that slept for most
//! of the range. It is read as of now, which can only delay a refill.

use crate::algorithm::bucket::rate::Rate;
use crate::clock::COARSE_MAX_AGE;
use crate::units::{MilliTokens, Nanos, Ticks};

mod fast;
mod reading;
mod scale;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use fast::Margin;
use reading::Reading;
use scale::{DEEP_DELAY, PAYLOAD_BITS, Scale};

const SCALE_MASK: u64 = 0x7f << PAYLOAD_BITS;
/// The W bit.
const WHOLE: u64 = 1 << 63;
/// Quanta of a token in all but the deep classes.
const MILLI: u64 = MilliTokens::PER_TOKEN;

/// A bucket word. Zero was never used; [`Word::fresh`] is full and no key's yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// A full bucket that no hit has touched. The incarnation keeps a thread that slept since the
    /// row's earlier life from taking this for the word that it saw then.
    pub(crate) fn fresh(incarnation: u64) -> Word {
        Word(((incarnation << 1) | 1) & ((1 << PAYLOAD_BITS) - 1))
    }

    #[inline]
    pub(crate) fn is_fresh(self) -> bool {
        self.0 & (7 << 60) == 0
    }

    #[inline]
    fn pack(scale: &Scale, whole: bool, tick: Ticks, tokens: i64) -> Word {
        let stored = tokens + scale.offset as i64;
        debug_assert!((0..1 << scale.token_bits).contains(&stored), "{tokens} in {scale:?}");
        Word(u64::from(whole) << 63 | scale.header | scale.stamp_bits(tick) | stored as u64)
    }

    fn scale(self) -> Scale {
        Scale::new((self.0 >> 60) as u8 & 7, (self.0 >> 56) as u8 & 15)
    }
    fn is_whole(self) -> bool {
        self.0 & WHOLE != 0
    }
    #[inline]
    fn stamp(self, scale: &Scale) -> Ticks {
        Ticks((self.0 >> scale.token_bits) & scale.stamp_mask)
    }
    #[inline]
    fn tokens(self, scale: &Scale) -> i64 {
        (self.0 & scale.token_mask) as i64 - scale.offset as i64
    }

    /// Ticks from the stamp to that of `now`; `None` if the stamp is ahead.
    fn lag(self, scale: &Scale, now: Nanos) -> Option<Ticks> {
        self.lag_at(scale, scale.tick_of(now))
    }

    #[inline(always)]
    fn lag_at(self, scale: &Scale, tick: Ticks) -> Option<Ticks> {
        let lag = scale.lag(self.stamp(scale), tick);
        (lag <= scale.most_lag()).then_some(lag)
    }

    /// Whether the stamp is the tick after this one.
    fn is_after(self, scale: &Scale, tick: Ticks) -> bool {
        tick.0.wrapping_add(1) & scale.stamp_mask == self.stamp(scale).0
    }

    /// Nanoseconds that have passed since the last charge for sure; `u64::MAX` if there was none.
    pub(crate) fn untouched_for(self, now: u64) -> u64 {
        if self.is_fresh() {
            return u64::MAX;
        }
        let scale = self.scale();
        let lag = self.lag(&scale, Nanos(now)).unwrap_or_default();
        lag.saturating_sub(scale.delay).0.saturating_mul(scale.tick.nanos.0)
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_fresh() {
            return write!(f, "Fresh({})", self.0 >> 1);
        }
        let scale = self.scale();
        f.debug_struct("Word")
            .field("tokens", &self.tokens(&scale))
            .field("quanta", &scale.quanta)
            .field("stamp", &self.stamp(&scale).0)
            .field("tick_ns", &scale.tick.nanos.0)
            .field("whole", &self.is_whole())
            .finish()
    }
}

/// A word's content as a straight line in time, in the reader's quanta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefillLine {
    /// Quanta at the line's start: the stamp, or the moment that W tells.
    base: i64,
    /// Nanoseconds from the start to now; negative before it.
    since: i64,
    /// From the stamp to now.
    lag: Ticks,
    /// The time after which a debt is over.
    delay: Nanos,
    /// Quanta since the start.
    refilled: i64,
    /// Quanta now, below full.
    content: i64,
}

impl RefillLine {
    /// Whether a debt of other numbers was ended, so that the line no longer says what is there. By
    /// the writer's own numbers the end of a debt is no more than a rounding.
    fn is_debt_over(&self) -> bool {
        self.content - self.base - self.refilled > 1
    }
}

/// What a word holds at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Full,
    Partial(RefillLine),
    /// The stamp is ahead of the clock. The quanta at the stamp.
    Ahead(i64),
}

/// What became of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Charge {
    Granted(Word),
    Denied,
    /// Denied in the stamp's own tick, in which `now` may be before the last charge: read the clock
    /// again.
    Recheck,
    /// The stamp is ahead of `now`: read the clock again, and if that does not help, repair.
    Ahead,
}

/// The numbers of a bucket limit, ready for the hit path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// In tokens, and in quanta.
    burst: u64,
    full: u64,
    rate: Rate,
    /// From empty to full.
    fill: Nanos,
    scale: Scale,
    /// A stamp that is as many ticks behind is that of a full bucket.
    full_lag: Ticks,
    /// A charge leaves a stamp that is fewer ticks behind.
    hold: Ticks,
    /// A tick refills a token or more.
    is_coarse: bool,
    /// The header that the fast path reads; one that no word has where it would have to divide.
    fast_header: u64,
    /// Ticks by which another thread's clock may be ahead of the coarse time.
    near: Ticks,
    now: Margin,
    coarse: Margin,
}

impl Bucket {
    /// `max` tokens each `per` nanoseconds into a bucket of `burst`; `None` where a word can't
    /// keep that exactly enough.
    pub(crate) fn new(max: u64, per: u64, burst: u64) -> Option<Bucket> {
        let scale = Scale::fit(max, per, burst)?;
        let fill = (u128::from(burst) * u128::from(per)).div_ceil(u128::from(max));
        let fill = Nanos(u64::try_from(fill).ok().filter(|&fill| fill < 1 << 61)?);
        let one = Ticks(1);
        let full_lag = scale.full_lag(fill);
        let rate = Rate::new(scale.quanta * max, per, scale.time_of(full_lag + one));
        let hold = match scale.delay {
            delay if delay == one => one,
            delay => delay.min(scale.ticks_ceil(rate.time_ceil(DEEP_DELAY))),
        };
        let token_ticks = scale.ticks_in(rate.time_ceil(scale.quanta));
        let is_coarse = rate.floor(scale.tick.nanos) >= scale.quanta;
        let margin = |after: Nanos, exact: bool| {
            let near = scale.ticks_in(after) + Ticks(2);
            Margin {
                gain: rate.ceil(scale.time_of(hold + one) + after),
                deny_lag: token_ticks.saturating_sub(near),
                debt_lag: (scale.delay + token_ticks).saturating_sub(near),
                exact,
                coarse: exact && is_coarse,
            }
        };
        let is_fast = rate.has_reciprocal() && scale.tick.nanos > Nanos(1);
        let oldest = Nanos(COARSE_MAX_AGE);
        Some(Bucket {
            burst,
            full: scale.quanta * burst,
            rate,
            fill,
            full_lag,
            hold,
            is_coarse,
            fast_header: if is_fast { scale.header } else { u64::MAX },
            near: scale.ticks_in(oldest) + one,
            now: margin(Nanos(0), true),
            coarse: margin(oldest, false),
            scale,
        })
    }

    pub(crate) fn burst(&self) -> u64 {
        self.burst
    }

    /// How long a tick of its words is.
    pub(crate) fn tick_length(&self) -> Nanos {
        self.scale.tick.nanos
    }

    /// Whether answers stand for much longer than `age` nanoseconds, as a rule.
    pub(crate) fn is_slower_than(&self, age: u64) -> bool {
        self.fill.0 / 8 > age
    }

    pub(crate) fn now(&self) -> &Margin {
        &self.now
    }

    /// For a `now` that has passed, no more than [`COARSE_MAX_AGE`] ago.
    pub(crate) fn coarse(&self) -> &Margin {
        &self.coarse
    }

    fn quanta(&self, tokens: u64) -> i64 {
        (tokens * self.scale.quanta) as i64
    }

    fn is_ours(&self, word: Word) -> bool {
        word.0 & SCALE_MASK == self.scale.header
    }

    #[inline(always)]
    fn level(&self, word: Word, now: Nanos) -> Level {
        if self.is_ours(word) {
            self.level_in(&self.scale, self.full_lag, word, now)
        } else {
            self.level_by_other_scale(word, now)
        }
    }

    /// A fresh word, or one of another scale, written under other numbers.
    #[cold]
    fn level_by_other_scale(&self, word: Word, now: Nanos) -> Level {
        if word.is_fresh() {
            return Level::Full;
        }
        let scale = word.scale();
        self.level_in(&scale, scale.full_lag(self.fill), word, now)
    }

    #[inline(always)]
    fn level_in(&self, scale: &Scale, full_lag: Ticks, word: Word, now: Nanos) -> Level {
        let tokens = word.tokens(scale);
        let passed = if word.is_whole() { tokens.rem_euclid(scale.quanta as i64) } else { 0 };
        let base = self.converted(tokens - passed, scale);
        let tick = scale.tick_of(now);
        let over = now - scale.time_of(tick);
        let mut start = passed * scale.unit.nanos.0 as i64;
        let lag = match word.lag_at(scale, tick) {
            Some(lag) if lag >= full_lag => return Level::Full,
            Some(lag) => lag,
            // The moment of W was rounded up to the next tick.
            None if word.is_whole()
                && word.is_after(scale, tick)
                && over + scale.unit.nanos > scale.tick.nanos =>
            {
                start += scale.tick.nanos.0 as i64;
                Ticks(0)
            }
            None => return Level::Ahead(base),
        };
        let since = (scale.time_of(lag) + over).0 as i64 - start;
        // A moment of W that is ahead by more than its rounding: the clock went back within the
        // tick.
        if since <= -(scale.unit.nanos.0 as i64) {
            return Level::Ahead(base);
        }
        let passed = Nanos(since.max(0) as u64);
        let delay = scale.time_of(scale.delay);
        // A tick of another scale may refill more than there are numbers.
        let refill = |time: Nanos| self.rate.floor(time).min(1 << 62) as i64;
        let refilled = refill(passed);
        let mut content = base + refilled;
        if base < 0 {
            content = content.max(refill(passed.saturating_sub(delay)));
        }
        if content >= self.full as i64 {
            return Level::Full;
        }
        Level::Partial(RefillLine { base, since, lag, delay, refilled, content })
    }

    /// Quanta of another scale, rounded down, in this one's.
    fn converted(&self, quanta: i64, from: &Scale) -> i64 {
        match from.quanta == self.scale.quanta {
            true => quanta,
            false => (quanta * self.scale.quanta as i64).div_euclid(from.quanta as i64),
        }
    }

    /// A line that has `quanta` at `now`.
    fn starting(&self, quanta: i64, now: Nanos) -> Word {
        let scale = &self.scale;
        let tick = scale.tick_of(now);
        let over = now - scale.time_of(tick);
        let pack = |whole: bool, tokens: i64| Word::pack(scale, whole, tick, tokens);
        if quanta >= self.full as i64 {
            return pack(false, self.full as i64);
        }
        match quanta % scale.quanta as i64 {
            _ if self.is_coarse => pack(false, quanta - self.rate.floor(over) as i64),
            0 => {
                let (tick, passed) = scale.whole_moment(tick, over);
                Word::pack(scale, true, tick, quanta + passed as i64)
            }
            _ => pack(false, quanta - self.rate.ceil(over) as i64),
        }
    }

    /// Takes `cost` tokens if they are there at `now`.
    pub(crate) fn charge(&self, word: Word, cost: u64, now: u64) -> Charge {
        let (cost, now) = (self.quanta(cost), Nanos(now));
        match self.level(word, now) {
            Level::Full if cost <= self.full as i64 => {
                Charge::Granted(self.starting(self.full as i64 - cost, now))
            }
            Level::Partial(line) if cost <= line.content => {
                Charge::Granted(self.lowered(word, &line, cost, now))
            }
            Level::Ahead(_) => Charge::Ahead,
            Level::Partial(line) if line.lag == Ticks(0) => Charge::Recheck,
            _ => Charge::Denied,
        }
    }

    /// The line, `cost` quanta lower. The stamp moves to the last tick, unless that is near.
    fn lowered(&self, word: Word, line: &RefillLine, cost: i64, now: Nanos) -> Word {
        let scale = &self.scale;
        let least = if word.is_whole() { 0 } else { -(scale.offset as i64) };
        let is_debt_over = line.base + line.refilled < line.content;
        if line.lag < self.hold && line.base - cost >= least && self.is_ours(word) && !is_debt_over
        {
            // The tokens are the low bits.
            return Word(word.0 - cost as u64);
        }
        // The moment of W may be after the last tick.
        if !self.is_ours(word) || is_debt_over || word.is_whole() && line.lag == Ticks(0) {
            return self.starting(line.content - cost, now);
        }
        let tick = scale.tick_of(now);
        let over = now - scale.time_of(tick);
        let until_tick = Nanos((line.since - over.0 as i64).max(0) as u64);
        let tokens = line.base + self.rate.floor(until_tick) as i64 - cost;
        Word::pack(scale, false, tick, tokens)
    }

    /// Takes what is there, down to nothing.
    pub(crate) fn drain(&self, word: Word, cost: u64, now: u64) -> Charge {
        match self.charge(word, cost, now) {
            Charge::Denied | Charge::Recheck => Charge::Granted(self.starting(0, Nanos(now))),
            other => other,
        }
    }

    /// Gives tokens back, up to full. `None` if it is full already.
    pub(crate) fn refund(&self, word: Word, back: MilliTokens, now: u64) -> Option<Word> {
        let now = Nanos(now);
        let quanta = (back.0 * self.scale.quanta / MilliTokens::PER_TOKEN) as i64;
        match self.level(word, now) {
            Level::Full => None,
            Level::Partial(line) if line.content + quanta >= self.full as i64 => {
                Some(self.starting(self.full as i64, now))
            }
            Level::Partial(line) => {
                let in_place =
                    back.0.is_multiple_of(MilliTokens::PER_TOKEN) && !line.is_debt_over();
                Some(match self.is_ours(word) && in_place {
                    true => Word(word.0 + quanta as u64),
                    false => self.starting(line.content.max(0) + quanta, now),
                })
            }
            Level::Ahead(base) => {
                let full = self.full as i64;
                Some(self.starting((base.clamp(0, full) + quanta).min(full), now))
            }
        }
    }

    /// The word as of `now` if its stamp is ahead; other words as they are.
    pub(crate) fn repaired(&self, word: Word, now: u64) -> Word {
        let now = Nanos(now);
        match self.level(word, now) {
            Level::Ahead(base) => self.starting(base.clamp(0, self.full as i64), now),
            _ => word,
        }
    }

    /// What the word says at `now`. One that is ahead is read as repaired.
    #[inline(always)]
    pub(crate) fn reading(&self, word: Word, now: u64) -> Reading<'_> {
        let line = match self.level(word, Nanos(now)) {
            Level::Full => None,
            Level::Partial(line) => Some(line),
            Level::Ahead(base) if base >= self.full as i64 => None,
            Level::Ahead(base) => {
                let base = base.max(0);
                Some(RefillLine { base, content: base, ..RefillLine::default() })
            }
        };
        Reading { bucket: self, line }
    }

    /// Nanoseconds until a line has `goal` quanta, more than now.
    #[inline(always)]
    fn until(&self, line: &RefillLine, goal: i64) -> u64 {
        let mut at = self.rate.time_ceil((goal - line.base) as u64);
        if line.base < 0 {
            let after_debt = self.rate.time_ceil(goal as u64).0.saturating_add(line.delay.0);
            at = at.min(Nanos(after_debt));
        }
        match i64::try_from(at.0) {
            Ok(at) => at.saturating_sub(line.since).max(0) as u64,
            Err(_) => u64::MAX,
        }
    }

    /// Whether the word gives a key the same rights as a fresh one, and may be replaced by one.
    ///
    /// The stamp must be before the present tick. Otherwise a charge and a refund within
    /// this tick could bring the same bits back, and a thread that saw them earlier could not tell.
    pub(crate) fn is_idle(&self, word: Word, now: u64) -> bool {
        let now = Nanos(now);
        let is_behind = || word.lag(&word.scale(), now).is_some_and(|lag| lag > Ticks(0));
        word.is_fresh() || is_behind() && self.level(word, now) == Level::Full
    }
}
