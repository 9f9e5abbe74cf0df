//! One key's token bucket, in one word.
//!
//! ```text
//!  63   62..60   59..56     55 … b        b−1 … 0
//! ┌────┬────────┬────────┬─────────────┬──────────────┐
//! │ Z  │ class  │  tick  │   stamp     │ milli-tokens │
//! └────┴────────┴────────┴─────────────┴──────────────┘
//! ```
//!
//! Tokens and time change together or not at all, so the word is the whole truth about the key:
//! nobody locks, and a reader may act on a copy. The word names its own scale (`class` says how
//! many bits `b` the tokens have, a tick is 10^tick ns), so it stays readable when the limits
//! change under it, in another process too.
//!
//! **One straight line.** Tokens T at the stamp, and the rate, are a line; what is there now is read
//! off it, to either side of the stamp. A charge lowers the line and leaves the stamp, so nothing is
//! rounded and nothing drifts. Only when T would go below 0 is the stamp moved, by a *period*: a
//! number of ticks that refills a whole number of thousandths, so that no fraction is lost; it may
//! come to lie ahead of the clock by less than one period.
//!
//! ```text
//! content(now) = min(C, T + k(now − stamp))                 k(x) = ⌊x·n/d⌋
//! charge:      T' = T − 1000·cost                           if that is not below 0
//! move:        T' = T − 1000·cost + k(m·period)             at stamp + m·period
//! from full:   T' = C − 1000·cost + k(next − now)           at next = ⌈now⌉tick
//! ```
//!
//! Ticks are powers of ten, so a limiter that is driven by whole milliseconds, as tests are, starts
//! its lines exactly. Between ticks a line that starts from full loses less than 1/1000 token, once.
//! (Where no period is short enough, the move rounds down too: 1/1000 token for each.)
//!
//! **Z** says that the line started from a whole number of tokens, at or before its stamp. Read before
//! its stamp, such a line is rounded so that its own starting point comes out exactly: otherwise the
//! last token of a fresh bucket would be missing for the rest of the tick. While a tick refills less
//! than one token this decides no hit differently than exact arithmetic would (the part of a token
//! refilled within the tick can't complete one); for faster limits it may let a token through 1/1000
//! of its time early. All other readings round down.
//!
//! **Wrap.** Stamps are counted modulo 2^(56−b) ticks. One that lies ahead by more than a period, but
//! less than a quarter of that horizon, is *in the future*: a racing clock, a clock fault, or a word
//! that slept for most of a horizon. It is read as just written, which can only delay a refill.

use crate::clock::LAG;
use crate::rate::Rate;

/// Thousandths in a token.
pub(crate) const MILLI: u64 = 1000;

/// Token bits of each class; class 0 is not a bucket's (see [`Word::fresh`]).
const TOKEN_BITS: [u32; 8] = [0, 11, 16, 21, 26, 31, 36, 40];
const PAYLOAD_BITS: u32 = 56;
const SCALE_MASK: u64 = 0x7f << PAYLOAD_BITS;
/// The Z bit: the line started from a whole number of tokens.
const WHOLE: u64 = 1 << 63;
const WHOLE_SCALE_MASK: u64 = WHOLE | SCALE_MASK;
const DAY: u128 = 86_400 * 1_000_000_000;
/// What a stamp should be able to tell apart: nine years.
const GOOD_HORIZON: u128 = 9 * 366 * DAY;
/// What it may make do with for the sake of ticks of a millisecond or less.
const FAIR_HORIZON: u128 = 180 * DAY;
const MILLISECOND: u8 = 6;

/// How a word splits its bits, as written in its own top byte, unfolded for use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    /// `class` and `tick`, where the word has them.
    header: u64,
    token_bits: u32,
    stamp_mask: u64,
    tick: Tick,
}

impl Scale {
    fn new(class: u8, tick: u8) -> Scale {
        let token_bits = TOKEN_BITS[usize::from(class & 7)];
        Scale {
            header: (u64::from(class) << 60) | (u64::from(tick) << 56),
            token_bits,
            stamp_mask: (1 << (PAYLOAD_BITS - token_bits)) - 1,
            tick: Tick::new(10u64.pow(u32::from(tick))),
        }
    }

    fn horizon(&self) -> u128 {
        (u128::from(self.stamp_mask) + 1) * u128::from(self.tick.nanos)
    }

    /// The finest tick that still tells nine years apart, or a millisecond if that is enough for
    /// half a year; never one that refills more than 1/16 of the bucket. `None` where a slow refill
    /// can't be told from a wrapped stamp.
    fn fit(full: u64, fill: u128) -> Option<Scale> {
        let class = (1u8..8).find(|&c| full + full / 16 < 1 << TOKEN_BITS[usize::from(c)])?;
        let at = |tick| Scale::new(class, tick);
        let enough = |t: u8, horizon: u128| at(t).horizon() >= horizon.max(16 * fill);
        let long = (0u8..16).find(|&t| enough(t, GOOD_HORIZON));
        let fair = enough(MILLISECOND, FAIR_HORIZON).then_some(MILLISECOND);
        let wanted = long.into_iter().chain(fair).min().unwrap_or(15);
        let fine = (0u8..16).rev().find(|&t| 16 * u128::from(at(t).tick.nanos) <= fill);
        let scale = at(wanted.min(fine.unwrap_or(0)));
        (fill <= scale.horizon() / 4).then_some(scale)
    }
}

/// Division by the length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tick {
    nanos: u64,
    /// ⌈2^(64+shift) / nanos⌉ with 2^shift < nanos ≤ 2^(shift+1): exact for every time below 2^63, as
    /// the excess is less than nanos/2^(64+shift) of it (see `rate.rs`). 0 for a tick of 1 ns.
    magic: u64,
    shift: u32,
}

impl Tick {
    fn new(nanos: u64) -> Tick {
        let shift = 63 - nanos.leading_zeros();
        let magic = (1u128 << (64 + shift)).div_ceil(u128::from(nanos)) as u64;
        Tick { nanos, magic, shift }
    }

    #[inline(always)]
    fn divide(&self, now: u64) -> u64 {
        if !self.is_quick(now) {
            return now / self.nanos;
        }
        self.divide_quickly(now)
    }

    /// As `divide`, for a time that [is quick](Tick::is_quick).
    #[inline(always)]
    fn divide_quickly(&self, now: u64) -> u64 {
        ((u128::from(now) * u128::from(self.magic)) >> 64) as u64 >> self.shift
    }

    /// Whether a time needs no division.
    #[inline(always)]
    fn is_quick(&self, now: u64) -> bool {
        self.magic != 0 && now >> 63 == 0
    }

    #[inline(always)]
    fn moment(&self, now: u64) -> Moment {
        let whole = self.divide(now);
        let over = now - whole * self.nanos;
        let sub = if over == 0 { 0 } else { self.nanos - over };
        Moment { next: whole + u64::from(over != 0), sub }
    }
}

/// A moment seen through a tick: the next tick and how far off it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    next: u64,
    sub: u64,
}

/// A bucket word. Zero was never used; [`Word::fresh`] is full and nobody's yet.
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
    fn pack(scale: &Scale, integral: bool, tick: u64, milli: u64) -> Word {
        debug_assert!(milli < 1 << scale.token_bits);
        let stamp = (tick & scale.stamp_mask) << scale.token_bits;
        Word(u64::from(integral) << 63 | scale.header | stamp | milli)
    }

    fn scale(self) -> Scale {
        Scale::new((self.0 >> 60) as u8 & 7, (self.0 >> 56) as u8 & 15)
    }
    #[inline]
    fn is_integral(self) -> bool {
        self.0 >> 63 != 0
    }
    #[inline]
    fn stamp(self, scale: &Scale) -> u64 {
        (self.0 >> scale.token_bits) & scale.stamp_mask
    }
    #[inline]
    fn milli(self, scale: &Scale) -> u64 {
        self.0 & ((1 << scale.token_bits) - 1)
    }

    /// Nanoseconds since the stamp, by the word's own scale; 0 if it is ahead. A word holds at least
    /// 0 tokens at its stamp, so one that is older than a fill time is full by those numbers.
    pub(crate) fn age(self, now: u64) -> u64 {
        if self.is_fresh() {
            return u64::MAX;
        }
        let scale = self.scale();
        let lag = scale.tick.divide(now).wrapping_sub(self.stamp(&scale)) & scale.stamp_mask;
        let is_ahead = lag > scale.stamp_mask - scale.stamp_mask / 4;
        if is_ahead { 0 } else { lag.saturating_mul(scale.tick.nanos) }
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_fresh() {
            return write!(f, "Fresh({})", self.0 >> 1);
        }
        let scale = self.scale();
        f.debug_struct("Word")
            .field("milli", &self.milli(&scale))
            .field("stamp", &self.stamp(&scale))
            .field("tick_ns", &scale.tick.nanos)
            .field("integral", &self.is_integral())
            .finish()
    }
}

/// What a word holds at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Full,
    Part(Line),
    /// The stamp lies ahead of the clock by more than it may.
    Future {
        anchor: u64,
        integral: bool,
    },
}

/// A line that is below full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Thousandths now.
    pub(crate) milli: u64,
    /// Thousandths at the stamp.
    anchor: u64,
    /// Nanoseconds from the stamp to now; negative before it.
    since: i64,
    integral: bool,
}

/// What became of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Charge {
    Granted(Word),
    Denied,
    /// The stamp lies ahead of `now`: read the clock again, and if that does not help, mend.
    Future,
}

/// The numbers of a bucket limit, ready for the hit path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    full: u64,
    rate: Rate,
    /// Nanoseconds from empty to full.
    fill: u64,
    /// A stamp at least this many ticks behind the next one is that of a full bucket.
    full_lag: u64,
    scale: Scale,
    /// Ticks that refill a whole number of thousandths; 1 if there is no such short number.
    period: u64,
    /// What a period refills, rounded up.
    gain: u64,
    quick: Quick,
}

/// The same numbers as [`Bucket::charge_quickly`] wants them: tokens in the top bits of a word, where
/// one shift brings them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quick {
    /// The header of words that it can read; one that no word has if times would not fit.
    header: u64,
    /// The same, with the bit for a line that started from full, for those who start another: one that
    /// no word has if the rate or the tick needs a division.
    start_header: u64,
    /// Where a word has its tokens.
    tokens: u64,
    /// 64 less the token bits.
    up: u32,
    one: u64,
    full: u64,
    /// ⌊2^b · nanoseconds for each thousandth⌋: times tokens in the top bits, the high half is the
    /// time that they take, rounded down.
    pace: u64,
    /// The horizon, as far as a time can tell.
    until: u64,
    /// Nanoseconds by which all stamps are less ahead, without a fault of the clock.
    ahead: u64,
    /// What a line must have at its stamp to have a token so long before; beyond any if that is more than
    /// a word holds.
    early: u64,
}

impl Quick {
    fn new(full: u64, rate: &Rate, scale: &Scale, ahead: u64) -> Quick {
        let up = 64 - scale.token_bits;
        let pace = rate.pace(scale.token_bits);
        let header = pace.filter(|_| scale.horizon() <= 1 << 62).map_or(u64::MAX, |_| scale.header);
        let no_division = rate.is_quick() && scale.tick.is_quick(0);
        let start_header = if no_division { header | WHOLE } else { u64::MAX };
        let until = scale.horizon().min(1 << 62) as u64;
        let early = MILLI + rate.ceil(ahead);
        let early = if early >> scale.token_bits == 0 { early << up } else { u64::MAX };
        let (one, full) = (MILLI << up, full << up);
        Quick {
            header,
            start_header,
            tokens: u64::MAX >> up,
            up,
            one,
            full,
            pace: pace.unwrap_or(0),
            until,
            ahead,
            early,
        }
    }

    /// Nanoseconds in which no more than `tokens`, in the top bits, are refilled.
    #[inline(always)]
    fn time(&self, tokens: u64) -> u64 {
        ((u128::from(tokens) * u128::from(self.pace)) >> 64) as u64
    }
}

impl Bucket {
    /// `max` tokens each `per` nanoseconds into a bucket of `burst`; `None` where a word can't
    /// keep that exactly enough.
    pub(crate) fn new(max: u64, per: u64, burst: u64) -> Option<Bucket> {
        let full = MILLI * burst;
        let fill = (u128::from(full) * u128::from(per)).div_ceil(u128::from(MILLI * max));
        let scale = Scale::fit(full, fill)?;
        let fill = u64::try_from(fill).ok().filter(|&f| f < 1 << 61)?;
        let tick = scale.tick;
        let rate = Rate::new(MILLI * max, per, fill + 2 * tick.nanos);
        let exact = rate.period(tick.nanos);
        let short = u128::from(exact) * u128::from(tick.nanos) * 16 <= u128::from(fill);
        let period = if short { exact } else { 1 };
        let gain = rate.ceil(period * tick.nanos);
        let full_lag = fill.div_ceil(tick.nanos) + 1;
        let quick = Quick::new(full, &rate, &scale, (period + 1) * tick.nanos);
        Some(Bucket { full, rate, fill, full_lag, scale, period, gain, quick })
    }

    /// The bucket's size in tokens.
    pub(crate) fn burst(&self) -> u64 {
        self.full / MILLI
    }

    /// How far ahead of the clock a stamp may lie: a clock that steps back by less is no fault.
    pub(crate) fn tick_nanos(&self) -> u64 {
        self.period * self.scale.tick.nanos
    }

    /// The most that a stamp may be before its charge, in nanoseconds.
    pub(crate) fn thousand_ticks(&self) -> u64 {
        self.scale.tick.nanos.saturating_mul(1000)
    }

    #[inline]
    fn is_ours(&self, word: Word) -> bool {
        word.0 & SCALE_MASK == self.scale.header
    }

    fn held(&self, word: Word, now: u64) -> Held {
        if self.is_ours(word) {
            self.held_in(&self.scale, self.full_lag, self.period, word, now)
        } else {
            self.held_elsewhere(word, now)
        }
    }

    /// A fresh word, or one of another scale, written under other limits.
    #[cold]
    fn held_elsewhere(&self, word: Word, now: u64) -> Held {
        if word.is_fresh() {
            return Held::Full;
        }
        let scale = word.scale();
        self.held_in(&scale, self.fill.div_ceil(scale.tick.nanos) + 1, 0, word, now)
    }

    fn held_in(&self, scale: &Scale, full_lag: u64, period: u64, word: Word, now: u64) -> Held {
        let moment = scale.tick.moment(now);
        let (anchor, integral) = (word.milli(scale), word.is_integral());
        let lag = moment.next.wrapping_sub(word.stamp(scale)) & scale.stamp_mask;
        if lag < full_lag {
            let since = (lag * scale.tick.nanos) as i64 - moment.sub as i64;
            return self.read(anchor, since, integral);
        }
        // The stamp is far behind, or ahead.
        let ahead = (scale.stamp_mask - lag) + 1;
        match ahead <= period {
            true => self.read(anchor, -((ahead * scale.tick.nanos + moment.sub) as i64), integral),
            false if ahead <= scale.stamp_mask / 4 => Held::Future { anchor, integral },
            false => Held::Full,
        }
    }

    fn read(&self, anchor: u64, since: i64, integral: bool) -> Held {
        let milli = if since >= 0 {
            anchor.saturating_add(self.rate.floor(since as u64))
        } else {
            anchor.saturating_sub(self.back(since.unsigned_abs(), integral))
        };
        if milli >= self.full {
            return Held::Full;
        }
        Held::Part(Line { milli, anchor, since, integral })
    }

    /// What the line gains in the last `sub` nanoseconds before its stamp.
    fn back(&self, sub: u64, integral: bool) -> u64 {
        if integral { self.rate.floor(sub) } else { self.rate.ceil(sub) }
    }

    /// A line that has `milli`, a whole number of tokens or not, at `now`.
    fn starting(&self, milli: u64, now: u64, whole: bool) -> Word {
        let moment = self.scale.tick.moment(now);
        let anchor = milli + self.rate.floor(moment.sub);
        Word::pack(&self.scale, whole, moment.next, anchor)
    }

    /// What [`Bucket::charge`] says of one token in the usual cases, in a straight line; `None` in all
    /// others. What a hit costs beyond the clock and the swap is the way from the one to the other,
    /// so there is only a subtraction on it and a comparison: how long the answer stands, from the
    /// stamp on, follows from the word alone and is known before the clock has been read.
    ///
    /// That also makes it independent of what time it is, within limits: the answer is the same, to
    /// the bit, for all moments from `now` until `lag` later.
    ///
    /// Before the first wrap a stamp is a time. After it, this would find one at least three
    /// quarters of a horizon old, and that is more than `fill`.
    #[inline(always)]
    pub(crate) fn charge_quickly(&self, word: Word, now: u64, lag: u64) -> Option<Charge> {
        let (scale, quick) = (&self.scale, &self.quick);
        let since = now.wrapping_sub(word.stamp(scale).wrapping_mul(scale.tick.nanos));
        if word.0 & SCALE_MASK != quick.header {
            return None;
        }
        let anchor = word.0 << quick.up;
        if anchor < quick.one {
            let denied = since < quick.time(quick.one - anchor).saturating_sub(lag);
            return denied.then_some(Charge::Denied);
        }
        // Later the line starts anew from full.
        let usual = since < quick.time(quick.full.saturating_sub(anchor)).saturating_sub(lag);
        usual.then_some(Charge::Granted(Word(word.0.wrapping_sub(MILLI))))
    }

    /// As [`Bucket::charge_quickly`], for a line whose stamp is yet to come: deep buckets have ticks of seconds.
    /// `Future` if there is no token at `now`, but may be within [`LAG`]: who read the clock before the word can't
    /// tell, since others may have started the line since, or spent what has been refilled.
    #[inline(never)]
    pub(crate) fn charge_early(&self, word: Word, now: u64, lag: u64) -> Option<Charge> {
        let (scale, quick) = (&self.scale, &self.quick);
        let ahead = word.stamp(scale).wrapping_mul(scale.tick.nanos).wrapping_sub(now);
        if word.0 & SCALE_MASK != quick.header || ahead == 0 || ahead >= quick.ahead {
            return None;
        }
        let anchor = word.0 << quick.up;
        // As it is at the stamp it stands until so long after it.
        let stands = |goal: u64, lag: u64| lag < ahead + quick.time(goal - anchor);
        if anchor < quick.one {
            let denied = if stands(quick.one, LAG) { Charge::Denied } else { Charge::Future };
            return stands(quick.one, lag).then_some(denied);
        }
        if anchor >= quick.early {
            let granted = Charge::Granted(Word(word.0 - MILLI));
            return (anchor < quick.full && stands(quick.full, lag)).then_some(granted);
        }
        // What has to be refilled until the stamp for there to be less than a token now, and for how long.
        let missing = anchor - quick.one + (1 << quick.up);
        (ahead >= lag + quick.time(missing) + 2).then_some(Charge::Future)
    }

    /// Whether answers stand for much longer than `lag`, as a rule.
    pub(crate) fn is_slower_than(&self, lag: u64) -> bool {
        self.fill / 8 > lag
    }

    /// The same from a bucket that is full again within the tick in which its line started, as it is
    /// for a busy key that is well within its limit: the new line has the same stamp.
    #[inline(always)]
    pub(crate) fn restart_quickly(&self, word: Word, now: u64) -> Option<Word> {
        let (scale, quick) = (&self.scale, &self.quick);
        let ahead = word.stamp(scale).wrapping_mul(scale.tick.nanos).wrapping_sub(now);
        if word.0 & WHOLE_SCALE_MASK != quick.start_header || ahead >= scale.tick.nanos {
            return None;
        }
        let least = self.full + self.rate.floor_quickly(ahead);
        let anchor = word.0 & quick.tokens;
        (anchor >= least).then(|| Word(word.0 - anchor + (least - MILLI)))
    }

    /// The other cases of one token from a word that was charged before and is not ahead.
    pub(crate) fn charge_known(&self, word: Word, now: u64) -> Option<Charge> {
        if self.is_full_quickly(word, now) {
            return Some(Charge::Granted(self.starting_quickly(self.full - MILLI, now)));
        }
        if word.is_fresh() {
            return None;
        }
        match self.charge(word, MILLI, now) {
            Charge::Denied if self.is_before(word, now) => None,
            charge => Some(charge),
        }
    }

    /// Whether a hit will start a new line, as it does for a key that was away for long.
    #[inline(always)]
    fn is_full_quickly(&self, word: Word, now: u64) -> bool {
        let (scale, quick) = (&self.scale, &self.quick);
        if (word.0 | WHOLE) & WHOLE_SCALE_MASK != quick.start_header || now >= quick.until {
            return false;
        }
        let since = now.wrapping_sub(word.stamp(scale) * scale.tick.nanos);
        let long = since >= self.fill;
        let full = long || word.milli(scale) + self.rate.floor_quickly(since) >= self.full;
        full && since >> 63 == 0
    }

    /// As `starting`, from whole tokens, where neither the rate nor the tick needs a division.
    #[inline(always)]
    fn starting_quickly(&self, milli: u64, now: u64) -> Word {
        let Tick { nanos, .. } = self.scale.tick;
        let next = self.scale.tick.divide_quickly(now + nanos - 1);
        let anchor = milli + self.rate.floor_quickly(next * nanos - now);
        Word::pack(&self.scale, true, next, anchor)
    }

    /// Takes `cost` thousandths if they are there at `now`.
    pub(crate) fn charge(&self, word: Word, cost: u64, now: u64) -> Charge {
        match self.held(word, now) {
            Held::Full if cost <= self.full => {
                Charge::Granted(self.starting(self.full - cost, now, true))
            }
            Held::Part(line) if cost <= line.milli => {
                Charge::Granted(self.lowered(word, line, cost, now))
            }
            Held::Future { .. } => Charge::Future,
            _ => Charge::Denied,
        }
    }

    /// The same line, `cost` lower.
    fn lowered(&self, word: Word, line: Line, cost: u64, now: u64) -> Word {
        if !self.is_ours(word) {
            return self.starting(line.milli - cost, now, false);
        }
        // The tokens are the low bits, so this is T − cost at the same stamp.
        if line.anchor >= cost { Word(word.0 - cost) } else { self.moved(word, line, cost) }
    }

    /// The line with its stamp moved on by whole periods, to the last one before now if that has
    /// enough, else to the next.
    fn moved(&self, word: Word, line: Line, cost: u64) -> Word {
        let nanos = self.scale.tick.nanos;
        let periods = line.since.max(0) as u64 / (nanos * self.period);
        let at = |periods: u64| {
            let ticks = periods * self.period;
            (ticks, line.anchor + self.rate.floor(ticks * nanos))
        };
        let (ticks, milli) =
            Some(at(periods)).filter(|p| p.1 >= cost).unwrap_or_else(|| at(periods + 1));
        let stamp = word.stamp(&self.scale).wrapping_add(ticks);
        Word::pack(&self.scale, false, stamp, milli - cost)
    }

    /// Takes what is there, down to nothing.
    pub(crate) fn drain(&self, word: Word, cost: u64, now: u64) -> Charge {
        match self.charge(word, cost, now) {
            Charge::Denied => Charge::Granted(self.starting(0, now, true)),
            other => other,
        }
    }

    /// Gives `milli` thousandths back, up to full. `None` if it is full already.
    pub(crate) fn refund(&self, word: Word, milli: u64, now: u64) -> Option<Word> {
        match self.held(word, now) {
            Held::Full => None,
            Held::Part(line) if line.milli + milli >= self.full => {
                Some(self.starting(self.full, now, true))
            }
            Held::Part(line) => Some(match self.is_ours(word) {
                true => Word(word.0 + milli),
                false => self.starting(line.milli + milli, now, false),
            }),
            Held::Future { .. } => self.refund(self.mended(word, now), milli, now),
        }
    }

    /// The word with a stamp that lies in the future brought back to `now`; other words as they are.
    ///
    /// The tokens at a stamp that was ahead when it was written include what was to be refilled until
    /// then. That time has not passed on this clock, so it is taken off: a clock fault grants nothing.
    /// A line that starts from whole tokens has it in the fraction; one that was moved ahead has at
    /// most a period's gain of it.
    pub(crate) fn mended(&self, word: Word, now: u64) -> Word {
        let Held::Future { anchor, integral } = self.held(word, now) else {
            return word;
        };
        let unearned = match integral {
            true if self.rate.ceil(self.scale.tick.nanos) < MILLI => anchor % MILLI,
            true => self.rate.ceil(self.scale.tick.nanos),
            false => self.gain,
        };
        self.starting(anchor.saturating_sub(unearned).min(self.full), now, integral)
    }

    /// Whether a newer reading of the clock might say otherwise: `now` is before the stamp.
    #[cold]
    pub(crate) fn is_before(&self, word: Word, now: u64) -> bool {
        match self.held(word, now) {
            Held::Full => false,
            Held::Part(line) => line.since < 0,
            Held::Future { .. } => true,
        }
    }

    /// What the word says at `now`. One from the future is read as mended.
    pub(crate) fn reading(&self, word: Word, now: u64) -> Reading<'_> {
        let line = match self.held(word, now) {
            Held::Full => None,
            Held::Part(line) => Some(line),
            Held::Future { .. } => return self.reading(self.mended(word, now), now),
        };
        Reading { bucket: self, line }
    }

    /// The line of a word in the usual cases: below full, and either at or after its stamp or in the tick
    /// in which it started from full. `None` in all others, and where there is something to divide by;
    /// see [`Bucket::charge_quickly`] for stamps that wrapped.
    #[inline(always)]
    pub(crate) fn line_quickly(&self, word: Word, now: u64) -> Option<Line> {
        let (scale, quick) = (&self.scale, &self.quick);
        if (word.0 | WHOLE) & WHOLE_SCALE_MASK != quick.start_header {
            return None;
        }
        let (anchor, integral) = (word.0 & quick.tokens, word.is_integral());
        let since = now.wrapping_sub(word.stamp(scale).wrapping_mul(scale.tick.nanos));
        let ahead = since.wrapping_neg();
        let milli = if since < self.fill {
            anchor + self.rate.floor_quickly(since)
        } else if ahead < scale.tick.nanos && integral {
            anchor.saturating_sub(self.rate.floor_quickly(ahead))
        } else {
            return None;
        };
        let line = Line { milli, anchor, since: since as i64, integral };
        (milli < self.full).then_some(line)
    }

    /// Nanoseconds until a line has `goal` thousandths, more than now.
    #[inline(always)]
    pub(crate) fn until(&self, line: &Line, goal: u64) -> u64 {
        let at = if goal > line.anchor {
            self.rate.time_ceil(goal - line.anchor) as i64
        } else {
            -(self.latest_before(line.anchor - goal, line.integral) as i64)
        };
        at.saturating_sub(line.since).max(0) as u64
    }

    /// Thousandths in a full bucket.
    pub(crate) fn full(&self) -> u64 {
        self.full
    }

    /// The most nanoseconds before a stamp at which no more than `spare` is missing: `back` inverted.
    fn latest_before(&self, spare: u64, integral: bool) -> u64 {
        match integral {
            true => self.rate.time_ceil(spare + 1).saturating_sub(1),
            false => self.rate.time_floor(spare),
        }
    }

    /// Whether the word gives a key the same rights as a fresh one, and may be replaced by one.
    ///
    /// The stamp must be strictly before the next tick. Otherwise a charge and a refund within
    /// this tick could bring the same bits back, and a thread that saw them earlier could not tell.
    pub(crate) fn is_idle(&self, word: Word, now: u64) -> bool {
        if word.is_fresh() {
            return true;
        }
        let scale = word.scale();
        let next = scale.tick.moment(now).next;
        let lag = next.wrapping_sub(word.stamp(&scale)) & scale.stamp_mask;
        let behind = lag != 0 && lag <= scale.stamp_mask - scale.stamp_mask / 4;
        behind && self.held(word, now) == Held::Full
    }
}

/// What a word says at one moment, read once for all questions.
pub(crate) struct Reading<'b> {
    bucket: &'b Bucket,
    /// `None` if the bucket is full.
    line: Option<Line>,
}

impl Reading<'_> {
    /// Thousandths.
    pub(crate) fn milli(&self) -> u64 {
        self.line.map_or(self.bucket.full, |line| line.milli)
    }

    /// Nanoseconds until `goal` thousandths are there: 0 if they are.
    pub(crate) fn wait(&self, goal: u64) -> u64 {
        debug_assert!(goal <= self.bucket.full);
        let line = self.line.filter(|line| line.milli < goal);
        line.map_or(0, |line| self.bucket.until(&line, goal))
    }

    /// Nanoseconds until the bucket is full.
    pub(crate) fn until_full(&self) -> u64 {
        self.wait(self.bucket.full)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn fields_neither_overlap_nor_leave_gaps() {
        for class in 1..8 {
            for tick in 0..16 {
                let scale = Scale::new(class, tick);
                let stamp = scale.stamp_mask << scale.token_bits;
                let tokens = (1u64 << scale.token_bits) - 1;
                let parts = [1 << 63, SCALE_MASK, stamp, tokens];
                assert_eq!(parts.iter().fold(0, |a, b| a | b), u64::MAX);
                assert_eq!(parts.iter().map(|p| p.count_ones()).sum::<u32>(), 64);
                assert_eq!(scale.header & !SCALE_MASK, 0);
            }
        }
    }

    proptest! {
        #[test]
        fn a_word_reads_back_what_was_packed(
            class in 1u8..8, tick in 0u8..16, z: bool, stamp: u64, milli: u64,
        ) {
            let scale = Scale::new(class, tick);
            let milli = milli & ((1 << scale.token_bits) - 1);
            let word = Word::pack(&scale, z, stamp, milli);
            prop_assert_eq!(word.scale(), scale);
            prop_assert_eq!(word.is_integral(), z);
            prop_assert_eq!(word.stamp(&scale), stamp & scale.stamp_mask);
            prop_assert_eq!(word.milli(&scale), milli);
            prop_assert!(!word.is_fresh());
        }

        #[test]
        fn moments_are_the_next_tick(now: u64, tick in 0u8..16) {
            let tick = Tick::new(10u64.pow(u32::from(tick)));
            let m = tick.moment(now);
            let exact = u128::from(m.next) * u128::from(tick.nanos) - u128::from(now);
            prop_assert_eq!(exact, u128::from(m.sub));
            prop_assert!(m.sub < tick.nanos);
        }

        #[test]
        fn a_fresh_bucket_grants_exactly_its_burst_at_one_instant(
            max in 1u64..=1_000_000_000, per_ms in 1u64..=86_400_000, parts in 1u64..50, now: u64,
        ) {
            let now = now >> 2;
            let Some(bucket) = Bucket::new(max, per_ms * 1_000_000, max) else { return Ok(()) };
            let cost = max / parts.min(max);
            let mut word = Word::fresh(1);
            let mut left = max;
            while left >= cost {
                let Charge::Granted(next) = bucket.charge(word, MILLI * cost, now) else {
                    panic!("{left} of {max} left, {cost} denied: {word:?}");
                };
                (word, left) = (next, left - cost);
            }
            prop_assert_eq!(bucket.reading(word, now).milli() / MILLI, left);
            prop_assert_eq!(bucket.charge(word, MILLI * (left + 1), now), Charge::Denied);
        }
    }

    /// What a doubt comes to if the clock was read after the word.
    fn settled(charge: Charge) -> Charge {
        if charge == Charge::Future { Charge::Denied } else { charge }
    }

    /// What the short ways say of a token, if anything, is what the long one says.
    fn short_ways_agree(bucket: &Bucket, word: Word, now: u64) -> Result<(), TestCaseError> {
        let quick = bucket.charge_quickly(word, now, 0);
        let restart = bucket.restart_quickly(word, now).map(Charge::Granted);
        let known = bucket.charge_known(word, now);
        let early = bucket.charge_early(word, now, 0).map(settled);
        for short in [quick, restart, known, early].into_iter().flatten() {
            prop_assert_eq!(short, bucket.charge(word, MILLI, now), "{:?} at {}", word, now);
        }
        // What is said of a moment that may have passed is said of all moments since.
        for (lag, later) in [(LAG, 0), (LAG, 1), (LAG, LAG / 3), (LAG, LAG), (17, 17), (17, 5)] {
            let early = bucket.charge_early(word, now, lag).map(settled);
            for short in [bucket.charge_quickly(word, now, lag), early].into_iter().flatten() {
                let then = bucket.charge(word, MILLI, now + later);
                prop_assert_eq!(short, then, "{:?} {} after {}", word, later, now);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn the_quick_way_says_the_same(
            (max, burst) in prop_oneof![
                (1u64..=1_000_000, 1u64..=1_000_000),
                (1u64..=1_000_000_000, 1u64..=1_000_000_000),
            ],
            per_ms in 1u64..=86_400_000,
            steps in proptest::collection::vec((0u64..1u64 << 36, 0u32..36, 1u64..4), 1..40),
            start in 0u64..1 << 61,
        ) {
            let Some(bucket) = Bucket::new(max, per_ms * 1_000_000, burst) else { return Ok(()) };
            let (mut word, mut now) = (Word::fresh(0), start);
            for (step, finer, cost) in steps {
                now += step >> finer;
                let cost = MILLI * cost.min(burst);
                short_ways_agree(&bucket, word, now)?;
                // About the moments at which the answer changes.
                for goal in [MILLI, bucket.full] {
                    let then = now + bucket.reading(word, now).wait(goal);
                    for near in then.saturating_sub(2)..then + 3 {
                        short_ways_agree(&bucket, word, near)?;
                    }
                }
                if let Charge::Granted(next) = bucket.charge(word, cost, now) {
                    word = next;
                }
            }
        }

        #[test]
        fn the_short_ways_say_the_same_before_a_stamp(
            (burst, finer, tenths) in (1u64..=1_000_000_000, 0u32..30, 1u64..100), per_s in 1u64..1_000_000,
            (about, off, whole) in (0usize..4, 0u64..5_000, any::<bool>()),
            (stamp, parts) in (1u64 << 20..1 << 24, proptest::collection::vec(0u64..=1_000, 4)),
        ) {
            let burst = (burst >> finer).max(1);
            let max = (burst * tenths / 10).clamp(1, 1_000_000_000);
            let Some(bucket) = Bucket::new(max, per_s * 1_000_000_000, burst) else { return Ok(()) };
            let (scale, quick) = (&bucket.scale, &bucket.quick);
            let nearly = |milli: u64| milli.saturating_add(off).saturating_sub(2_500);
            let anchor = match about {
                0 => off,
                1 => nearly(bucket.full),
                2 => nearly(quick.early >> quick.up),
                _ => nearly(bucket.full / 1_000 * parts[0]),
            };
            let anchor = anchor.min((1 << scale.token_bits) - 1);
            // Before the first wrap.
            let stamp = stamp % (scale.stamp_mask / 2);
            let word = Word::pack(scale, whole, stamp, anchor);
            let (at, most) = (stamp * scale.tick.nanos, quick.ahead + 3);
            // How long before it there is exactly a token, if there is one then.
            let turn = bucket.rate.time_ceil(anchor.saturating_sub(MILLI - 1)).min(most);
            let aheads = parts.iter().map(|part| most / 1_000 * part).chain([turn, turn + LAG, most]);
            for ahead in aheads.flat_map(|ahead| ahead.saturating_sub(4)..ahead.saturating_add(4)) {
                short_ways_agree(&bucket, word, at.saturating_sub(ahead))?;
            }
        }

        #[test]
        fn the_usual_answer_needs_no_long_way(
            max in 1u64..=1_000_000, per_ms in 1u64..=86_400_000, spent in 1u64..=100,
        ) {
            let (per, burst) = (per_ms * 1_000_000, 100);
            let Some(bucket) = Bucket::new(max, per, burst) else { return Ok(()) };
            let start = 1 << 40;
            let Charge::Granted(word) = bucket.charge(Word::fresh(0), MILLI * spent, start) else {
                panic!("a fresh bucket has {burst}");
            };
            // After the tick, and well before the answer changes.
            let goal = if spent < burst { bucket.full } else { MILLI };
            let (tick, wait) = (bucket.scale.tick.nanos, bucket.reading(word, start).wait(goal));
            let now = start + tick + wait / 8;
            let early = wait > 2 * tick + 16 && start + bucket.fill < bucket.quick.until;
            prop_assert!(!early || bucket.charge_quickly(word, now, 0).is_some());
        }
    }

    #[test]
    fn scales_are_as_fine_and_as_long_as_promised() {
        let minute = Bucket::new(20, 60 * SECOND, 20).unwrap();
        assert!(minute.scale.horizon() >= GOOD_HORIZON, "{minute:?}");
        let fast = Bucket::new(5_000, SECOND, 1).unwrap();
        assert!(fast.tick_nanos() * 16 <= 200_000, "{fast:?}");
        let tokens = Bucket::new(2_000_000, 60 * SECOND, 2_000_000).unwrap();
        assert!(tokens.scale.horizon() >= u128::from(SECOND) * 86_400 * 365, "{tokens:?}");
        let slow = Bucket::new(1, 366 * 86_400 * SECOND, 1_000_000_000);
        assert!(slow.is_none(), "a fill time of a billion years can't be told from a wrap");
    }

    #[test]
    fn whole_milliseconds_lose_nothing() {
        for (max, per, step) in [(20, 60, 3_000), (1_000, 60, 60), (7, 1, 143), (3, 7, 2_334)] {
            let bucket = Bucket::new(max, per * SECOND, max).unwrap();
            let start = 1_234_567 * 1_000_000;
            let mut word = Word::fresh(0);
            for i in 0..max {
                let now = start + i * 1_000_000;
                let Charge::Granted(next) = bucket.charge(word, MILLI, now) else { panic!("{i}") };
                word = next;
            }
            // What has come back until t is exactly ⌊max·(t − start)/per⌋.
            let mut granted = 0;
            for ms in max..20 * step {
                let due = (max as u128 * ms as u128 / (per as u128 * 1000)) as u64;
                let now = start + ms * 1_000_000;
                while let Charge::Granted(next) = bucket.charge(word, MILLI, now) {
                    (word, granted) = (next, granted + 1);
                }
                assert_eq!(granted, due, "{max}/{per}s after {ms} ms");
            }
        }
    }

    #[test]
    fn a_denial_passes_exactly_when_its_wait_is_over() {
        for (max, per, burst) in [(20, 60 * SECOND, 20), (7, SECOND, 3), (9_999, SECOND, 1)] {
            let bucket = Bucket::new(max, per, burst).unwrap();
            for start in [0, 1, 12_345_678_901, 1 << 44] {
                let drain = bucket.charge(Word::fresh(0), bucket.full, start);
                let Charge::Granted(word) = drain else { panic!() };
                for later in [0, 1, 999, 1 << 20] {
                    let now = start + later;
                    let wait = bucket.reading(word, now).wait(MILLI);
                    let at = |t| matches!(bucket.charge(word, MILLI, t), Charge::Granted(_));
                    assert!(at(now + wait) && (wait == 0 || !at(now + wait - 1)));
                }
            }
        }
    }

    #[test]
    fn a_stamp_in_the_future_is_mended_without_a_gain() {
        let bucket = Bucket::new(20, 60 * SECOND, 20).unwrap();
        let Charge::Granted(word) = bucket.charge(Word::fresh(0), 15 * MILLI, 3600 * SECOND) else {
            panic!()
        };
        assert_eq!(bucket.charge(word, MILLI, SECOND), Charge::Future);
        let mended = bucket.mended(word, SECOND);
        assert_eq!(bucket.reading(mended, SECOND).milli(), 5 * MILLI);
        assert_eq!(bucket.reading(mended, SECOND).until_full(), 45 * SECOND);
        let Charge::Granted(word) = bucket.charge(Word::fresh(0), 15 * MILLI, 3600 * SECOND + 77)
        else {
            panic!()
        };
        assert_eq!(bucket.reading(bucket.mended(word, SECOND), SECOND).milli(), 5 * MILLI);
    }
}
