//! Tables of format 1, which are read once: to be moved to a table of this format.
//!
//! Header, rows, key words, hash, the slots of a log and most notes are as they are now. These
//! differ:
//!
//! | | format 1 |
//! |---|---|
//! | home of a key | by the high bits of its hash: of no matter here, where all rows are read |
//! | bucket | flag, class 3, tick 4, then stamp and thousandths; a stamp may be ahead |
//! | counter | the number of the cell, which only its writer's `per` can tell 34, units 30 |
//! | fixed count | epoch 16, start in µs 48, and epoch 16, units 48 |
//! | permit | the end in µs 48, nonce 16 |
//! | log | three words before the slots |
//! | end of an enforced wait | a moment, not a length |
//!
//! Words of buckets and counters don't say by which numbers they were written. They are read by the
//! policy's present ones, and what has to be rounded is rounded against the key.
//!
//! What was charged is charged again in the new row, at its own time. A build that writes format 1
//! does not know of moves: its processes go on in the old file and say nothing.

use std::os::unix::fs::FileExt;

use crate::algorithm::limit::Limit;
use crate::algorithm::permit::Permits;
use crate::algorithm::stamp;
use crate::algorithm::{Cell, Placed};
use crate::algorithm::{bucket, window};
use crate::clock::{Clock, Time};
use crate::limits::Limits;
use crate::memory::LINE_WORDS;
use crate::storage::directory::{Directory, Temporary};
use crate::storage::error::FileError;
use crate::storage::header::Format1Header;
use crate::storage::host::Host;
use crate::storage::layout::{FileLayout, Sections, TableSection};
use crate::storage::moving::{FileTables, Moving, NoPlace, pairs};
use crate::storage::table_file::TableFile;
use crate::sync::{AtomicU64, Ordering};
use crate::table::row::{KeyWord, Row, State};
use crate::table::{Table, TableWords};
use crate::units::MilliTokens;

const OVERFLOW_ROWS: usize = 8;
const RING_HEADER: usize = 3;
const UNIT_BITS: u32 = 30;
const FRESH_UNITS: u64 = (1 << UNIT_BITS) - 1;
const NONCE_BITS: u32 = 16;

/// The words of a file of format 1, as they were when it was opened.
#[derive(Debug)]
pub struct Format1 {
    header: Format1Header,
    words: Vec<u64>,
}

/// The rows of one table: fingerprint and state words of those in use, and the state words of those
/// that keys share.
struct Rows<'f> {
    used: Vec<(u64, &'f [u64])>,
    shared: Vec<&'f [u64]>,
}

/// The tables of such a file.
pub struct Format1Tables<'f> {
    engines: Vec<(Limits, Rows<'f>)>,
    ledgers: Vec<Rows<'f>>,
    offenders: &'f [u64],
}

impl Format1 {
    /// Reads a file; `None` if it is not there, or not of format 1.
    ///
    /// # Errors
    /// If it is of format 1 and not sound, or the system says no.
    pub fn open_in(
        directory: &Directory,
        name: &str,
        host: &Host,
    ) -> Result<Option<Format1>, FileError> {
        let Some(file) = directory.open_file(name)? else { return Ok(None) };
        let Some(header) = Format1Header::read(&file, host)? else { return Ok(None) };
        let mut bytes = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        Ok(Some(Format1 { header, words }))
    }

    /// What the tables are, as their maker described them.
    pub fn shape(&self) -> &str {
        self.header.shape()
    }

    /// Whether it was made under a clock that is moved by hand.
    pub fn is_manual(&self) -> bool {
        self.header.is_manual()
    }

    /// As [`TableFile::begin_move`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_move<'d>(
        &self,
        directory: &'d Directory,
        name: &str,
        shape: &str,
        words: usize,
        host: &Host,
    ) -> Result<Moving<'d>, FileError> {
        let made = Temporary::named(directory, name)?;
        let entry = directory.entry(name, &made.file)?;
        let parts = (entry, &made.file);
        let file = TableFile::successor_of(&self.header, parts, shape, words, host)?;
        Ok(Moving::new(made, file, name))
    }

    /// The tables of the file; `None` if it is not large enough for them.
    pub fn laid_out(&self, layout: &FileLayout) -> Option<Format1Tables<'_>> {
        let engines =
            layout.engines.iter().map(|(limits, capacity)| (1 + width(limits), *capacity));
        let ledgers = layout.ledgers.iter().map(|(notes, capacity)| (1 + notes, *capacity));
        let engines: Vec<Format1Layout> = engines.map(Format1Layout::new).collect::<Option<_>>()?;
        let ledgers: Vec<Format1Layout> = ledgers.map(Format1Layout::new).collect::<Option<_>>()?;
        let sizes = |all: &[Format1Layout]| all.iter().map(|table| table.words).collect::<Vec<_>>();
        let sections = Sections::new(self.header.tables_at(), &sizes(&engines), &sizes(&ledgers))?;
        let rows = |(table, section)| self.rows(table, section);
        let engines: Option<Vec<Rows<'_>>> =
            engines.iter().zip(&sections.engines).map(rows).collect();
        let ledgers = ledgers.iter().zip(&sections.ledgers).map(rows).collect::<Option<_>>()?;
        let limits = layout.engines.iter().map(|(limits, _)| limits.clone());
        let offenders = self.words.get(sections.offenders)?;
        Some(Format1Tables { engines: limits.zip(engines?).collect(), ledgers, offenders })
    }

    fn rows(&self, layout: &Format1Layout, section: &TableSection) -> Option<Rows<'_>> {
        let Format1Layout { rows, row_words, stride, .. } = *layout;
        let width = row_words - 1;
        let table = self.words.get(section.rows.clone())?;
        let shared = self.words.get(section.overflow.clone())?;
        let row = |row: usize| match stride {
            Some(stride) => (table[row * stride], &table[row * stride + 1..][..width]),
            None => (table[row], &table[rows + row * width..][..width]),
        };
        let used = |(key, words): (u64, _)| {
            let key = KeyWord(key);
            let used = matches!(key.state(), State::Live | State::Sealed);
            used.then(|| (key.print().max(1), words))
        };
        let used = (0..rows).map(row).filter_map(used).collect();
        Some(Rows { used, shared: shared.chunks(row_words).map(|row| &row[1..]).collect() })
    }
}

/// How the rows of a table lie in format 1.
struct Format1Layout {
    rows: usize,
    row_words: usize,
    /// Words from row to row, where a row lies whole in a cache line; `None` where key words lie
    /// apart.
    stride: Option<usize>,
    words: TableWords,
}

impl Format1Layout {
    fn new((row_words, capacity): (usize, usize)) -> Option<Format1Layout> {
        let stride = Some(row_words.next_power_of_two()).filter(|_| row_words <= LINE_WORDS);
        let line = stride.map_or(LINE_WORDS, |stride| LINE_WORDS / stride);
        let rows = capacity.max(1).checked_mul(3)?.div_ceil(2).next_multiple_of(line);
        let words = rows.checked_mul(stride.unwrap_or(row_words))?;
        let words = TableWords { rows: words, overflow: OVERFLOW_ROWS * row_words };
        Some(Format1Layout { rows, row_words, stride, words })
    }
}

/// Words of a cell in format 1.
fn words_of(cell: &Cell) -> usize {
    match cell {
        Cell::Windows(log) => RING_HEADER + log.slots,
        other => other.words(),
    }
}

fn width(limits: &Limits) -> usize {
    limits.placed.iter().map(|placed| words_of(&placed.cell)).sum()
}

/// Where the words of a cell begin in format 1. (A log comes last.)
fn place_of(limits: &Limits, placed: &Placed) -> usize {
    let before = limits.placed.iter().take_while(|other| other.at < placed.at);
    before.map(|other| words_of(&other.cell)).sum()
}

impl FileTables {
    /// As [`FileTables::move_engine`], from a file of format 1. The limits of this engine must be
    /// those that keys are judged by.
    ///
    /// # Errors
    /// As there.
    pub fn move_engine_of_format1(
        &self,
        to: usize,
        old: &Format1Tables<'_>,
        from: usize,
        limits: &[Option<usize>],
        now: u64,
    ) -> Result<(), NoPlace> {
        let (new_limits, table, _) = self.engine(to);
        let (old_limits, rows) = &old.engines[from];
        let cells = pairs(new_limits, old_limits, limits);
        if cells.is_empty() {
            return Ok(());
        }
        let copy = |words: &[u64], row: &Row<'_>| {
            for (new, old) in &cells {
                let at = place_of(old_limits, old);
                let stated = &new_limits.stated[new.index];
                charge_again(&words[at..at + words_of(&old.cell)], new, stated, row, now);
            }
        };
        let is_idle = |row: &Row<'_>| cells.iter().all(|(new, _)| new.is_idle(row, now));
        put_rows(rows, table, new_limits.row_words() - 1, is_idle, copy)
    }

    /// As [`FileTables::move_ledger`], from a file of format 1.
    ///
    /// # Errors
    /// As there.
    pub fn move_ledger_of_format1<const W: usize>(
        &self,
        to: usize,
        old: &Format1Tables<'_>,
        from: usize,
        is_idle: impl Fn(&[u64; W]) -> bool,
        change: impl Fn(&mut [u64; W]),
    ) -> Result<(), NoPlace> {
        let copy = |words: &[u64], row: &Row<'_>| {
            let mut notes = std::array::from_fn(|at| words[at] >> 4);
            change(&mut notes);
            crate::ledger::store_notes(row, &notes);
        };
        let is_idle = |row: &Row<'_>| is_idle(&crate::ledger::notes(row));
        put_rows(&old.ledgers[from], self.ledger(to), W, is_idle, copy)
    }

    /// As [`FileTables::move_offenders`], from a file of format 1.
    pub fn move_offenders_of_format1(&self, old: &Format1Tables<'_>) {
        self.put_offenders(old.offenders.iter().copied());
    }
}

/// Puts rows into a new table; `copy` makes the words of one.
fn put_rows(
    rows: &Rows<'_>,
    table: &Table,
    width: usize,
    is_idle: impl Fn(&Row<'_>) -> bool,
    copy: impl Fn(&[u64], &Row<'_>),
) -> Result<(), NoPlace> {
    let judge = |words: &[u64]| {
        let (key, fresh) = (AtomicU64::new(0), (0..width).map(|_| AtomicU64::new(0)));
        let fresh: Vec<AtomicU64> = fresh.collect();
        let row = Row::new(&key, KeyWord::NEVER_USED, &fresh);
        copy(words, &row);
        is_idle(&row)
    };
    let (idle, live): (Vec<_>, Vec<_>) = rows.used.iter().partition(|(_, words)| judge(words));
    let prints = |rows: &[&(u64, &[u64])]| rows.iter().map(|row| row.0).collect::<Vec<u64>>();
    let places = table.arrange(&prints(&live), &prints(&idle));
    let places = places.ok_or(NoPlace { rows: live.len() })?;
    for ((print, words), place) in live.iter().chain(&idle).zip(places) {
        let Some(place) = place else { continue };
        let row = table.at(place);
        copy(words, &row);
        // ORDERING: Relaxed; the file is published by a rename, after a sync.
        row.key.store(KeyWord::new(State::Live, 1, *print).0, Ordering::Relaxed);
    }
    for (words, row) in rows.shared.iter().zip(table.shared_rows()) {
        copy(words, &row);
    }
    Ok(())
}

/// Charges in a fresh cell what the words of an old one hold.
fn charge_again(words: &[u64], new: &Placed, stated: &Limit, row: &Row<'_>, now: u64) {
    let (clock, _) = Clock::manual(now);
    let at = |then: u64| Time::at(&clock, then.min(now));
    match &new.cell {
        Cell::Bucket(numbers) => {
            let missing = missing_of(words[0], stated, now);
            let tokens = missing.0.div_ceil(MilliTokens::PER_TOKEN);
            if tokens > 0 {
                let _ = bucket::record(row, new.at, numbers, tokens, &mut at(now));
                let beyond = MilliTokens::of_tokens(tokens) - missing;
                let _ = bucket::refund(row, new.at, numbers, beyond, &mut at(now));
            }
        }
        Cell::Counter(counter) => {
            for (then, units) in cells_of(words, counter.per, now) {
                let _ = counter.take(row, new.at, units, true, &mut at(then));
            }
        }
        Cell::Fixed(fixed) => {
            let (start, units) = span_of(words, now);
            if units > 0 {
                let _ = fixed.take(row, new.at, units, true, &mut at(start));
            }
        }
        Cell::Permits(permits) => {
            for lease_us in leases_of(words, now) {
                let (max, slots) = (permits.slots as u64, permits.slots);
                let held = Permits { max, lease_us, slots };
                let _ = held.take(row, new.at, &mut at(now));
            }
        }
        Cell::Windows(log) => {
            let entries = window::Entries::of_format1(words, now);
            log.ring(row, new.at).fill(entries, window::longest(&log.windows), now);
        }
    }
}

/// What is missing in a bucket, by the limit of now.
fn missing_of(word: u64, limit: &Limit, now: u64) -> MilliTokens {
    const TOKEN_BITS: [u32; 8] = [0, 11, 16, 21, 26, 31, 36, 40];
    let class = (word >> 60) as usize & 7;
    if class == 0 {
        return MilliTokens(0);
    }
    let (bits, tick) = (TOKEN_BITS[class], 10u64.pow((word >> 56) as u32 & 15));
    let mask = (1u64 << (56 - bits)) - 1;
    let (milli, stamp) = (word & ((1 << bits) - 1), (word >> bits) & mask);
    let rate =
        |nanos: u128| nanos * u128::from(limit.max.max(1)) * u128::from(MilliTokens::PER_TOKEN);
    let per = limit.per.as_nanos();
    let next = now.div_ceil(tick);
    let lag = next.wrapping_sub(stamp) & mask;
    let into = u128::from(next) * u128::from(tick) - u128::from(now);
    let ticks = |count: u64| u128::from(count) * u128::from(tick);
    let ahead = mask - lag + 1;
    let full = MilliTokens::of_tokens(limit.size().max(1));
    let content = match lag != 0 && ahead <= mask / 4 {
        true => u128::from(milli).saturating_sub(rate(ticks(ahead) + into).div_ceil(per)),
        false if ticks(lag) >= into => u128::from(milli) + rate(ticks(lag) - into) / per,
        false => u128::from(milli).saturating_sub(rate(into).div_ceil(per)),
    };
    full.saturating_sub(MilliTokens(u64::try_from(content).unwrap_or(u64::MAX)))
}

/// When units of a counter were spent, at the latest, and how many: in the cell before this one,
/// and in this one. What is ahead of the clock is spent now.
fn cells_of(words: &[u64], per: u64, now: u64) -> Vec<(u64, u64)> {
    const CELLS: u64 = u64::MAX >> UNIT_BITS;
    let cell = now / per;
    let spent = |&word: &u64| {
        let units = word & FRESH_UNITS;
        let age = cell.wrapping_sub(word >> UNIT_BITS) & CELLS;
        match (word, age) {
            (0, _) => None,
            _ if units == FRESH_UNITS || units == 0 => None,
            (_, 1) => Some(((cell * per).saturating_sub(1), units)),
            (_, 0) => Some((now, units)),
            _ if age > CELLS - CELLS / 4 => Some((now, units)),
            _ => None,
        }
    };
    let mut spent: Vec<_> = words.iter().filter_map(spent).collect();
    spent.sort_unstable();
    spent
}

/// When the span of a fixed count began, and its units.
fn span_of(words: &[u64], now: u64) -> (u64, u64) {
    let [span, count] = [words[0], words[1]];
    let counted = span >> stamp::BITS == count >> stamp::BITS;
    let Some(start) = (span & stamp::MASK).checked_sub(1).filter(|_| counted) else {
        return (now, 0);
    };
    let age = u64::try_from(stamp::age(start, now)).unwrap_or(0);
    ((now / stamp::MICRO).saturating_sub(age) * stamp::MICRO, count & stamp::MASK)
}

/// How long permits are still out, in microseconds.
fn leases_of(words: &[u64], now: u64) -> Vec<u64> {
    let left = |word: &u64| {
        let end = word >> NONCE_BITS;
        let left = u64::try_from(-stamp::age(end, now)).unwrap_or(0);
        (end != 0 && left > 0).then_some(left)
    };
    words.iter().filter_map(left).collect()
}
