//! What the kernel offers for this: processes, steps, kills, scarce resources.
//! All `unsafe` is here.
//!
//! A process that forks should have one thread. Only the tests of forks beside threads have more.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// A process.
pub type Pid = libc::pid_t;

/// How a wait for a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It left with this code.
    Left(i32),
    /// It was ended by this signal.
    Killed(i32),
    /// It is stopped by this signal.
    Stopped(i32),
}

/// The code of a child that panicked.
pub const PANICKED: i32 = 101;

/// Forks. The child does its work, says with what code it leaves, and never comes back.
///
/// # Panics
/// If there can be no more processes.
pub fn fork(work: impl FnOnce() -> i32) -> Pid {
    fork_beside_threads(work)
}

/// As [`fork`], of a process with other threads. The child has none of them. The locks that they
/// held stay taken.
///
/// # Panics
/// If there can be no more processes.
pub fn fork_beside_threads(work: impl FnOnce() -> i32) -> Pid {
    // SAFETY: the child of a process with one thread may call anything. The child of one with more
    // must not wait for their locks, as its caller tests. The allocator handles forks.
    match unsafe { libc::fork() } {
        0 => {
            let work = std::panic::AssertUnwindSafe(work);
            let code = std::panic::catch_unwind(work).unwrap_or(PANICKED);
            // SAFETY: leaves, without what the parent would want done at its own end.
            unsafe { libc::_exit(code) }
        }
        child => {
            assert!(child > 0, "fork: {}", io::Error::last_os_error());
            child
        }
    }
}

/// As `kill -9`.
pub fn kill(pid: Pid) {
    // SAFETY: only a number is passed; ours are children that were not waited for yet.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn wait_by(pid: Pid, flags: i32) -> Option<Ended> {
    let mut status = 0;
    // SAFETY: `status` is ours to write.
    let found = unsafe { libc::waitpid(pid, &raw mut status, flags) };
    assert!(found >= 0, "waitpid: {}", io::Error::last_os_error());
    (found == pid).then(|| match status {
        _ if libc::WIFSTOPPED(status) => Ended::Stopped(libc::WSTOPSIG(status)),
        _ if libc::WIFSIGNALED(status) => Ended::Killed(libc::WTERMSIG(status)),
        _ => Ended::Left(libc::WEXITSTATUS(status)),
    })
}

/// Waits for a child.
///
/// # Panics
/// If it is none.
pub fn wait(pid: Pid) -> Ended {
    wait_by(pid, libc::__WALL).expect("it waits")
}

/// Waits for a child that must end in time, and kills it if it does not.
pub fn wait_within(pid: Pid, time: Duration) -> Option<Ended> {
    let started = Instant::now();
    loop {
        if let Some(ended) = wait_by(pid, libc::WNOHANG) {
            return Some(ended);
        }
        if started.elapsed() > time {
            kill(pid);
            wait(pid);
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Lets the parent step this process.
pub fn trace_me() {
    // SAFETY: a request without addresses.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
}

/// Stops this process until its parent goes on with it.
pub fn stop_here() {
    // SAFETY: only a number is passed.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// A call of the kernel, when it is over.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Which call, as `libc::SYS_…`.
    pub number: i64,
    /// What was passed.
    pub arguments: [u64; 6],
    /// What it gave; below 0, an error.
    pub result: i64,
}

/// Lets a stopped child go on to the end of its next system call. `None` if it stopped itself
/// instead.
///
/// # Panics
/// If it is not ours to trace, or has ended.
pub fn next_call(pid: Pid) -> Option<Call> {
    let mut call = Call { number: -1, arguments: [0; 6], result: 0 };
    loop {
        match resume_to_call(pid) {
            Ended::Stopped(signal) if signal == libc::SIGTRAP | 0x80 => {}
            Ended::Stopped(libc::SIGSTOP) => return None,
            other => panic!("the child was {other:?}"),
        }
        let info = call_info(pid);
        if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
            // SAFETY: `op` says that the kernel has filled this field.
            let entry = unsafe { info.u.entry };
            (call.number, call.arguments) = (entry.nr as i64, entry.args);
        } else {
            // SAFETY: as above; it is the end of the call.
            let exit = unsafe { info.u.exit };
            return Some(Call { result: exit.sval, ..call });
        }
    }
}

/// Lets a stopped child run on until it is about to make a system call that `wanted` accepts, by
/// number and arguments. False if the child ended or stopped before.
///
/// # Panics
/// If it is not ours to trace.
pub fn run_to_call(pid: Pid, wanted: impl Fn(i64, &[u64]) -> bool) -> bool {
    while resume_to_call(pid) == Ended::Stopped(libc::SIGTRAP | 0x80) {
        let info = call_info(pid);
        if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
            // SAFETY: `op` says that the kernel has filled this field of the union.
            let entry = unsafe { info.u.entry };
            if wanted(entry.nr as i64, &entry.args) {
                return true;
            }
        }
    }
    false
}

fn resume_to_call(pid: Pid) -> Ended {
    // Stops at calls differ from signals, and the child ends with this process.
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    // SAFETY: a request without addresses.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
    // SAFETY: as above.
    let done = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, 0) };
    assert!(done == 0, "ptrace: {}", io::Error::last_os_error());
    wait(pid)
}

fn call_info(pid: Pid) -> libc::ptrace_syscall_info {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let (request, bytes) = (libc::PTRACE_GET_SYSCALL_INFO, size_of_val(&info));
    // SAFETY: the kernel writes at most so many bytes of what is ours.
    let filled = unsafe { libc::ptrace(request, pid, bytes, info.as_mut_ptr()) };
    assert!(filled > 0, "ptrace: {}", io::Error::last_os_error());
    // SAFETY: numbers only, of which any bits are sound.
    unsafe { info.assume_init() }
}

/// One instruction of a stopped child; how it is afterwards.
///
/// # Panics
/// If it is not ours to step.
pub fn step(pid: Pid) -> Ended {
    // SAFETY: a request without addresses.
    let done = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, 0) };
    assert!(done == 0, "ptrace: {}", io::Error::last_os_error());
    wait(pid)
}

/// Ends this process by a signal if it is still there after some seconds; 0 calls that off.
pub fn watchdog(seconds: u32) {
    // SAFETY: only a number is passed.
    unsafe { libc::alarm(seconds) };
}

/// Takes root's rights away.
///
/// # Panics
/// If that can't be done.
pub fn become_nobody() {
    // SAFETY: only a number is passed.
    let done = unsafe { libc::setuid(65_534) };
    assert!(done == 0, "setuid: {}", io::Error::last_os_error());
}

/// Becomes another user, which is in one group only.
///
/// # Panics
/// If that can't be done.
pub fn become_user(user: u32, group: u32) {
    // SAFETY: no groups are read.
    let left = unsafe { libc::setgroups(0, std::ptr::null()) };
    // SAFETY: only a number is passed.
    let joined = unsafe { libc::setgid(group) };
    // SAFETY: only a number is passed.
    let became = unsafe { libc::setuid(user) };
    assert!((left, joined, became) == (0, 0, 0), "setuid: {}", io::Error::last_os_error());
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    // SAFETY: it only reads a number.
    unsafe { libc::geteuid() == 0 }
}

/// What new files are not to allow.
pub fn set_umask(mode: u32) {
    // SAFETY: only a number is passed.
    unsafe { libc::umask(mode) };
}

/// No more descriptors than this.
pub fn limit_descriptors(most: u64) {
    limit(libc::RLIMIT_NOFILE, most);
}

/// No larger files than this; writing beyond is an error, not a signal.
pub fn limit_file_size(bytes: u64) {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    limit(libc::RLIMIT_FSIZE, bytes);
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: `limit` is a valid struct that is read during the call.
    let done = unsafe { libc::setrlimit(resource, &raw const limit) };
    assert!(done == 0, "setrlimit: {}", io::Error::last_os_error());
}

/// A view of the filesystems that only this process and its children have.
///
/// # Errors
/// Where that needs more rights than we have.
pub fn leave_mounts() -> io::Result<()> {
    // SAFETY: only a number is passed.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    mount(Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, "")
}

/// Mounts a small filesystem in memory.
///
/// # Errors
/// Where that needs more rights than we have.
pub fn mount_memory(path: &Path, options: &str) -> io::Result<()> {
    mount(path, Some("tmpfs"), 0, options)
}

/// Makes what was mounted read-only.
///
/// # Errors
/// As the kernel says.
pub fn make_read_only(path: &Path) -> io::Result<()> {
    mount(path, Some("tmpfs"), libc::MS_REMOUNT | libc::MS_RDONLY, "")
}

fn mount(path: &Path, kind: Option<&str>, flags: u64, options: &str) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let kind = CString::new(kind.unwrap_or("none"))?;
    let (path, options) = (CString::new(path.as_os_str().as_bytes())?, CString::new(options)?);
    let (kind, data) = (kind.as_ptr(), options.as_ptr().cast());
    // SAFETY: all three are strings with an end, which live as long as the call.
    match unsafe { libc::mount(kind, path.as_ptr(), kind, flags, data) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Words that processes share.
#[derive(Debug)]
pub struct Shared {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: atomics at an address that stays mapped until the process ends.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped by `map_shared` for so many words, never unmapped, used
        // through atomics only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

/// Maps the words of a file, for good.
///
/// # Errors
/// As the kernel says.
pub fn map_shared(file: &File, words: usize) -> io::Result<Shared> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let (null, fd) = (std::ptr::null_mut(), file.as_raw_fd());
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let start = unsafe { libc::mmap(null, 8 * words, rights, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Shared { start, words })
}
