//! A folder for a test, limiters in it, and workers on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate::{Error, Limiter, LimiterBuilder};

/// A folder of its own, gone with the test.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// An empty folder under `base`, which is the test's `CARGO_TARGET_TMPDIR`.
    pub fn new(base: &str) -> Place {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(base).join(format!("place-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Place(path)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where tables go: not there yet.
    pub fn store(&self) -> PathBuf {
        self.0.join("limits")
    }

    /// Where the shared words go.
    pub fn shared_words(&self) -> PathBuf {
        self.0.join("words")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A limiter with these rules, in a folder of tables.
///
/// # Errors
/// As [`LimiterBuilder::build`].
pub fn open_with(folder: &Path, rules: Value, options: LimiterBuilder) -> Result<Limiter, Error> {
    let policy = json!({ "version": 1, "rules": rules, "memory": "2GB" });
    let store = format!("file:{}", folder.display());
    options.store(store).value(&policy).build()
}

/// The same, by the host's clock.
///
/// # Panics
/// If it can't be had.
pub fn open(folder: &Path, rules: Value) -> Limiter {
    open_with(folder, rules, Limiter::builder()).expect("a limiter")
}

/// A worker that has not been started.
pub fn worker(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a worker to its end, which must be a good one and come in time; what it printed.
///
/// # Panics
/// If it fails or hangs (I8).
pub fn run(program: &str, arguments: &[&str], within: Duration) -> String {
    let mut command = worker(program, arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a worker");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > within {
            let _ = child.kill();
            panic!("I8: {arguments:?} did not finish within {within:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stdout, .. } = child.wait_with_output().expect("its output");
    let printed = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{arguments:?}: {status}\n{printed}");
    printed
}

/// Prints what a worker said. What it skipped is said aloud, past the capture of tests' output.
pub fn tell(printed: &str) {
    use std::io::Write;
    println!("{}", printed.trim());
    for line in printed.lines().filter(|line| line.starts_with("skipped:")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// The names of what lies in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
