//! Calls that take turns, and the table of what each adds to another.

use std::hint::black_box;
use std::time::Instant;

use crate::{cell, median};

/// One call, by its number.
pub type Work<'a> = Box<dyn Fn(usize) -> bool + 'a>;

/// A contender.
pub struct Row<'a> {
    /// What it is called.
    pub name: &'static str,
    /// Which row it is compared with.
    pub against: usize,
    /// What is timed.
    pub work: Work<'a>,
}

/// Nanoseconds a call, of each contender in each round.
pub fn measure(rows: &[Row<'_>], rounds: usize, calls: usize) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for (row, times) in rows.iter().zip(&mut times) {
            (0..calls / 8).for_each(|i| {
                black_box((row.work)(i));
            });
            let start = Instant::now();
            (0..calls).for_each(|i| {
                black_box((row.work)(i));
            });
            times.push(start.elapsed().as_nanos() as f64 / calls as f64);
        }
    }
    times
}

/// Prints what was measured.
pub fn print(title: &str, rows: &[Row<'_>], times: &[Vec<f64>]) {
    println!("\n| {title} | ns | adds | ratio |\n|---|---|---|---|");
    for (row, mine) in rows.iter().zip(times) {
        let theirs = &times[row.against];
        let each = || mine.iter().zip(theirs);
        let (added, ratio) = (
            median(each().map(|(a, b)| a - b).collect()),
            median(each().map(|(a, b)| a / b).collect()),
        );
        println!("| {} | {} | {added:+.1} | {ratio:.2} |", row.name, cell(mine));
    }
}
