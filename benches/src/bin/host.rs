//! What does a table in a file cost, and how far do processes get with it?
//!
//! Prints the table "One table for a host" of BENCHMARKS.md: `cargo run --release -p
//! tidegate-benches --bin host` (nine minutes; `-- --quick` for a smoke run, whose figures mean
//! nothing). Linux only.
//!
//! The first part takes turns between one rule in memory and the same rule in a file, in one
//! thread. The unit is nanoseconds a call: the median of all rounds, with the minimum in brackets.
//!
//! The second part runs one and two processes (or threads) for the same time and counts their
//! calls. Their keys are separate, common, or one; the table has the default size if they fit. Two
//! processes with a file each share nothing: that is what the machine allows. The floor is a bare
//! array as large as the table. Two threads hash, load and swap one of its words for each call,
//! which is what sharing so many cache lines costs any program.
//!
//! Keys are 24-byte strings. Limits are so deep that nothing is denied. Two processes on two cores
//! share them with whatever else runs on the host.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tidegate::{Limiter, Rule};
use tidegate_benches::{CAPACITY, Exact, Floor, Limiter as _, cell, key, median, uniform};

const DEEP: &str = "1000000000/min";

fn rule(store: &str, capacity: usize) -> Rule {
    let store = store.to_string();
    let options = Limiter::builder().store(store).capacity(capacity);
    let limiter = options.limits(DEEP).build().expect("the store opens");
    limiter.rule("default").expect("its rule")
}

fn file_store(folder: &Path) -> String {
    format!("file:{}", folder.display())
}

/// Spends each key down to half of its burst, and waits for the next tick: a second for limits as
/// deep as this. Then hits lower what is left, as most hits do.
fn prepare(rule: &Rule, keys: &[String]) {
    for key in keys {
        let left = rule.peek(key, 0).ok().and_then(|decision| decision.remaining).unwrap_or(0);
        let _ = rule.record(key, left.saturating_sub(500_000_000));
    }
    std::thread::sleep(Duration::from_millis(1_100));
}

fn allow(rule: &Rule, key: &str) -> bool {
    black_box(rule.allow(key).is_ok_and(|allowed| allowed))
}

fn time(rule: &Rule, keys: &[String], calls: usize) -> f64 {
    let asked =
        |calls: usize| keys.iter().cycle().take(calls).filter(|key| allow(rule, key)).count();
    asked(calls / 8);
    let start = Instant::now();
    assert_eq!(asked(calls), calls, "nothing is denied");
    start.elapsed().as_nanos() as f64 / calls as f64
}

fn against_memory(folder: &Path, rounds: usize, calls: usize) {
    println!("\n| one thread, allow | memory, ns | file, ns | ratio |\n|---|---|---|---|");
    let (memory, file) = (rule("memory", CAPACITY), rule(&file_store(folder), CAPACITY));
    for (name, keys) in [("one hot key", vec![key(7)]), ("10,000 keys", uniform(10_000, 1 << 16))] {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        prepare(&memory, &keys);
        prepare(&file, &keys);
        for _ in 0..rounds {
            here.push(time(&memory, &keys, calls));
            there.push(time(&file, &keys, calls));
        }
        let ratio = median(here.iter().zip(&there).map(|(a, b)| b / a).collect());
        println!("| {name} | {} | {} | {ratio:.2} |", cell(&here), cell(&there));
    }
}

/// What people use today to share counts on one host: nanoseconds a hit, on one hot key.
fn others(folder: &Path, calls: usize) {
    println!("\n| one hot key, one process | ns a hit | times the file store's |\n|---|---|---|");
    let file = rule(&file_store(folder), CAPACITY);
    prepare(&file, &[key(7)]);
    let ours = time(&file, &[key(7)], calls * 8);
    let row = |name: &str, ns: f64| println!("| {name} | {ns:.0} | {:.0} |", ns / ours);
    row("tidegate, file store, allow", ours);
    match redis(folder, calls) {
        Some(ns) => row("Redis on loopback, INCR", ns),
        None => println!("| Redis | no redis-server here (Debian: redis-server) | |"),
    }
    #[cfg(feature = "sqlite")]
    row("SQLite (WAL, synchronous off), insert and count", sqlite(folder, calls / 8));
    #[cfg(not(feature = "sqlite"))]
    println!("| SQLite | run with `--features sqlite` | |");
}

/// A server of its own on a socket in the folder; one round trip for each hit.
fn redis(folder: &Path, calls: usize) -> Option<f64> {
    let socket = folder.join("redis.sock");
    let mut server = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    let connect = |_| {
        std::thread::sleep(Duration::from_millis(20));
        std::os::unix::net::UnixStream::connect(&socket).ok()
    };
    let measured = (0..100).find_map(connect).map(|stream| {
        let (mut lines, mut out) = (BufReader::new(&stream), &stream);
        let mut hit = || {
            out.write_all(b"INCR 0123456789abcdef01234567\r\n").expect("a request");
            let mut answer = String::new();
            lines.read_line(&mut answer).expect("an answer");
            assert!(answer.starts_with(':'), "{answer}");
        };
        (0..calls / 8).for_each(|_| hit());
        let start = Instant::now();
        (0..calls).for_each(|_| hit());
        start.elapsed().as_nanos() as f64 / calls as f64
    });
    let _ = server.kill().and_then(|()| server.wait());
    measured
}

/// The scheme of a published chat service: a row for each hit, counted within the window.
#[cfg(feature = "sqlite")]
fn sqlite(folder: &Path, calls: usize) -> f64 {
    let database = rusqlite::Connection::open(folder.join("limits.sqlite")).expect("a database");
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
             CREATE TABLE entries (key TEXT NOT NULL, at INTEGER NOT NULL);
             CREATE INDEX by_key ON entries (key, at);",
        )
        .expect("a table");
    let hit = |now: i64| {
        let counted: i64 = database
            .prepare_cached("SELECT COUNT(*) FROM entries WHERE key = ?1 AND at > ?2")
            .and_then(|mut count| count.query_row((&key(7), now - 100), |row| row.get(0)))
            .expect("a count");
        database
            .prepare_cached("INSERT INTO entries VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute((&key(7), now)))
            .expect("a row");
        black_box(counted < 1_000_000)
    };
    let start = Instant::now();
    let _allowed = (0..calls as i64).filter(|&now| hit(now)).count();
    start.elapsed().as_nanos() as f64 / calls as f64
}

/// How many calls are made until the time is over.
fn count(ask: impl Fn(&String) -> bool, keys: &[String], length: Duration) -> u64 {
    let (start, mut calls) = (Instant::now(), 0);
    while start.elapsed() < length {
        for key in keys.iter().cycle().skip(calls as usize % keys.len()).take(512) {
            black_box(ask(key));
        }
        calls += 512;
    }
    calls
}

/// Room for the keys of two, and no less than by default.
fn capacity_for(kind: &str) -> usize {
    kind.parse().map_or(0, |keys: usize| 2 * keys).max(CAPACITY)
}

/// A table of its own for each size.
fn store_for(folder: &Path, kind: &str) -> Rule {
    let capacity = capacity_for(kind);
    rule(&file_store(&folder.join(capacity.to_string())), capacity)
}

fn keys_of(kind: &str, number: u64) -> Vec<String> {
    match kind {
        "hot" => vec![key(7)],
        "common" => uniform(4_096, 1 << 16).split_off(if number == 0 { 0 } else { 1 << 15 }),
        many => {
            let many = many.parse().expect("a number of keys");
            (0..many).map(|i| key(1_000_000 * (number as usize + 1) + i)).collect()
        }
    }
}

/// A process of its own: says when it is ready, waits for the word, and says how far it got.
fn work(folder: &str, kind: &str, number: u64, length: Duration) {
    let (rule, keys) = (store_for(Path::new(folder), kind), keys_of(kind, number));
    prepare(&rule, &keys);
    let ask = |key: &String| allow(&rule, key);
    count(ask, &keys, Duration::from_millis(50));
    println!("ready");
    let _ = std::io::stdin().lock().read_line(&mut String::new());
    println!("{}", count(ask, &keys, length));
}

struct Worker {
    child: Child,
    word: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Worker {
    fn start(folder: &Path, kind: &str, number: usize, length: Duration) -> Worker {
        let own = std::env::current_exe().expect("a path of one's own");
        let number = number.to_string();
        let length = length.as_millis().to_string();
        let mut child = Command::new(own)
            .args(["--work", &folder.display().to_string(), kind, &number, &length])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let word = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut worker = Worker { child, word, lines };
        assert_eq!(worker.line(), "ready");
        worker
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim().to_string()
    }
}

/// Calls a second of processes that work in these folders, together.
fn processes(folders: &[&Path], kind: &str, length: Duration) -> f64 {
    let start = |(number, folder): (usize, &&Path)| Worker::start(folder, kind, number, length);
    let mut workers: Vec<Worker> = folders.iter().enumerate().map(start).collect();
    workers.iter_mut().for_each(|worker| worker.word.write_all(b"go\n").expect("a word"));
    let calls: u64 = workers.iter_mut().map(|w| w.line().parse::<u64>().expect("a number")).sum();
    workers.iter_mut().for_each(|worker| drop(worker.child.wait()));
    calls as f64 / length.as_secs_f64()
}

/// Calls a second of two threads of one process, on the same file.
fn threads(folder: &Path, kind: &str, length: Duration) -> f64 {
    let rule = store_for(folder, kind);
    prepare(&rule, &[keys_of(kind, 0), keys_of(kind, 1)].concat());
    together(2, kind, length, |key| allow(&rule, key))
}

/// Calls a second of so many threads, together.
fn together(many: u64, kind: &str, length: Duration, ask: impl Fn(&String) -> bool + Sync) -> f64 {
    let run = |number: u64| {
        let keys = keys_of(kind, number);
        count(&ask, &keys, Duration::from_millis(50));
        count(&ask, &keys, length)
    };
    let calls: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..many).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    calls as f64 / length.as_secs_f64()
}

/// What two threads do with the floor, times what one does.
fn floor(kind: &str, length: Duration) -> f64 {
    // 24 bytes a key: as many lines as the table has.
    let floor = Floor::<Exact>::new(24 * capacity_for(kind));
    let calls = |many: u64| together(many, kind, length, |key| floor.allow(key));
    calls(2) / calls(1)
}

fn scaling(folder: &Path, rounds: usize, length: Duration) {
    println!(
        "\n| million calls a second | one process | two processes | two threads | a file each \
         | two / one | two / threads | a file each / one | floor: two / one |
|---|---|---|---|---|---|---|---|---|"
    );
    let other = folder.join("other");
    std::fs::create_dir_all(&other).expect("a folder");
    for (name, kind) in [
        ("a key of its own each", "1"),
        ("256 keys of their own", "256"),
        ("4,096 keys of their own", "4096"),
        ("500,000 keys of their own, room for a million", "500000"),
        ("4,096 keys in common", "common"),
        ("one hot key", "hot"),
    ] {
        // In turns: what else runs on the machine comes and goes.
        let round = |_| {
            let two = processes(&[folder, folder], kind, length);
            let one = processes(&[folder], kind, length);
            let apart = processes(&[folder, &other], kind, length);
            [one, two, threads(folder, kind, length), apart, floor(kind, length)]
        };
        let all: Vec<[f64; 5]> = (0..rounds).map(round).collect();
        let of = |at: usize| median(all.iter().map(|round| round[at] / 1e6).collect());
        let ratio = |at: usize, to: usize| {
            format!("{:.2}", median(all.iter().map(|round| round[at] / round[to]).collect()))
        };
        let calls = [0, 1, 2, 3].map(|at| format!("{:.1}", of(at))).join(" | ");
        let ratios = [ratio(1, 0), ratio(1, 2), ratio(3, 0)].join(" | ");
        let floor = median(all.iter().map(|round| round[4]).collect());
        println!("| {name} | {calls} | {ratios} | {floor:.2} |");
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [work_flag, folder, kind, number, length] = &args[..]
        && work_flag == "--work"
    {
        let millis = Duration::from_millis(length.parse().expect("a number"));
        return work(folder, kind, number.parse().expect("a number"), millis);
    }
    let quick = args.iter().any(|arg| arg == "--quick");
    let folder: PathBuf =
        std::env::temp_dir().join(format!("tidegate-host-{}", std::process::id()));
    let (rounds, calls, length) = if quick { (3, 1 << 10, 20) } else { (41, 1 << 15, 500) };
    against_memory(&folder, rounds, 8 * calls);
    scaling(&folder, rounds.min(9), Duration::from_millis(length));
    others(&folder, calls);
    let _ = std::fs::remove_dir_all(&folder);
}
