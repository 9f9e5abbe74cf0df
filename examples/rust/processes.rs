//! Four processes share one file: together they are granted the limit, not four times the limit.
//!
//! The second half of `make demo`. Each process hits the same key again and again. One of them is
//! killed halfway, as by `kill -9`. The reported grants add up to the limit. One grant of the
//! killed process may be missing: the one that it could not report any more. After all have
//! exited, a new process still finds every count in the file. The exit code is 1 if anything does
//! not add up.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use tidegate::Limiter;

const PROCESSES: usize = 4;
const LIMIT: u64 = 2_000;
const LIMITS: &str = "2000/day window";

fn main() -> ExitCode {
    match std::env::args().nth(1) {
        Some(folder) => work(Path::new(&folder)),
        None => show(),
    }
}

fn open(folder: &Path) -> Result<Limiter, tidegate::Error> {
    let store = format!("file:{}", folder.display());
    Limiter::builder().store(store).capacity(100).limits(LIMITS).build()
}

/// One process: a line for each grant, until there are no more.
fn work(folder: &Path) -> ExitCode {
    let limiter = open(folder).expect("the store opens");
    let mut out = std::io::stdout().lock();
    while limiter.allow("the one key").expect("a key of one part") {
        // Whoever reads may be gone; so may this process, at any moment.
        if out.write_all(b"granted\n").and_then(|()| out.flush()).is_err() {
            break;
        }
        // So that all of them get to run before the limit is spent.
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    ExitCode::SUCCESS
}

struct Worker {
    child: Child,
    lines: Box<dyn BufRead>,
    granted: u64,
}

impl Worker {
    fn start(folder: &Path) -> std::io::Result<Worker> {
        let own = std::env::current_exe()?;
        let mut child = Command::new(own).arg(folder).stdout(Stdio::piped()).spawn()?;
        let lines = child.stdout.take().map(BufReader::new).expect("it is piped");
        Ok(Worker { child, lines: Box::new(lines), granted: 0 })
    }

    /// Reads one report; false at the end.
    fn read(&mut self) -> bool {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        self.granted += u64::from(line == "granted\n");
        read
    }
}

fn show() -> ExitCode {
    let folder = std::env::temp_dir().join(format!("tidegate-demo-{}", std::process::id()));
    let result = run(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    println!("\n{PROCESSES} processes, one file, one key, {LIMITS}:\n");
    let mut workers =
        (0..PROCESSES).map(|_| Worker::start(folder)).collect::<Result<Vec<_>, _>>()?;
    // The first is killed when it has reported a quarter of what one would get.
    while workers[0].granted < LIMIT / 16 && workers[0].read() {}
    workers[0].child.kill()?;
    for (number, worker) in workers.iter_mut().enumerate() {
        while worker.read() {}
        let status = worker.child.wait()?;
        let how = if status.success() { "exited" } else { "killed halfway" };
        println!("  process {}: granted {:>4}, {how}", number + 1, worker.granted);
    }
    let reported: u64 = workers.iter().map(|worker| worker.granted).sum();
    let used = open(folder)?.stats("the one key")?.map_or(0, |stats| stats.limits[0].used);
    let more = open(folder)?.allow("the one key")?;
    // The killed process may have been granted one hit more than it could report.
    let sound = used == LIMIT && !more && (LIMIT - 1..=LIMIT).contains(&reported);
    println!(
        "\nprocesses: {reported} granted of {LIMIT}, {used} still counted in the file \
         by a new process, {} over",
        reported.saturating_sub(LIMIT)
    );
    Ok(sound)
}
