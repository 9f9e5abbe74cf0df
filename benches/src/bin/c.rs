//! What does a call through C add to the same call in Rust?
//!
//! Prints the table "What C adds" of BENCHMARKS.md: `cargo build --release -p tidegate-c`,
//! then `cargo run --release -p tidegate-benches --bin c` (about a minute; `-- --quick` for a
//! smoke run, whose figures mean nothing). The library is the shared one, opened as a C
//! program's loader would.
//!
//! Keys, limits, rounds and units are those of `rules.rs`. What C itself does (filling in a
//! `tg_key`) is done here in Rust, by the same stores.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::time::Duration;

use libloading::{Library, Symbol};
use tidegate::Limiter;
use tidegate_benches::{Row, distinct, key, measure, print, uniform};

const DEEP: &str = "1000000000/min";
const HALF: u64 = 500_000_000;

/// `tg_key`.
#[repr(C)]
struct Key {
    version: u32,
    has_max: u32,
    data: *const u8,
    len: usize,
    parts: *const c_void,
    part_count: usize,
    attributes: *const c_void,
    attribute_count: usize,
    max: u64,
}

impl Key {
    fn of(text: &str) -> Key {
        Key {
            version: 1,
            has_max: 0,
            data: text.as_ptr(),
            len: text.len(),
            parts: null(),
            part_count: 0,
            attributes: null(),
            attribute_count: 0,
            max: 0,
        }
    }
}

/// Room for a `tg_decision` (or for less), whose first word has `allowed` in its fifth byte.
type Out = [u64; 55];

type New = unsafe extern "C" fn(*const c_char, *const c_void, *mut *mut c_void) -> c_int;
type RuleGet = unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_void) -> c_int;
type Keyed = unsafe extern "C" fn(*mut c_void, *const Key, u64, *mut Out) -> c_int;
type Allow = unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int;

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (rounds, calls) = if quick { (3, 1 << 10) } else { (41, 1 << 15) };
    let beside: PathBuf = std::env::current_exe().expect("a path of our own");
    let path = beside.with_file_name("libtidegate.so");
    // SAFETY: it is our own library, and nothing runs when it is loaded.
    let library = unsafe { Library::new(&path) };
    let library = library.expect("cargo build --release -p tidegate-c comes first");
    for (title, keys) in [("one hot key", vec![key(7)]), ("10,000 keys", uniform(10_000, 1 << 16))]
    {
        compare(&library, title, &keys, rounds, calls);
    }
}

fn function<'l, F>(library: &'l Library, name: &str) -> Symbol<'l, F> {
    // SAFETY: the types above are those of the header.
    unsafe { library.get(name) }.expect("a function of the header")
}

/// A limiter of one deep bucket, made by C; never freed.
fn rule_of_c(library: &Library) -> *mut c_void {
    let (mut limiter, mut rule) = (null_mut(), null_mut());
    let new = function::<New>(library, "tg_limiter_new");
    let get = function::<RuleGet>(library, "tg_rule_get");
    // SAFETY: as the header has it.
    let made = unsafe { new(c"1000000000/min".as_ptr(), null(), &raw mut limiter) };
    assert_eq!(made, 0);
    // SAFETY: as the header has it.
    assert_eq!(unsafe { get(limiter, c"default".as_ptr(), &raw mut rule) }, 0);
    rule
}

fn compare(library: &Library, title: &str, keys: &[String], rounds: usize, calls: usize) {
    let of = |i: usize| &keys[i % keys.len()];
    let limiter = Limiter::new(DEEP).expect("a limit that can be had");
    let rust = limiter.rule("default").expect("its rule");
    let c = rule_of_c(library);
    let tg_allow: Allow = *function(library, "tg_allow");
    let tg_hit: Keyed = *function(library, "tg_hit");
    let tg_record: Keyed = *function(library, "tg_record");
    for key in distinct(10_000).iter().chain(keys.iter().take(1)) {
        let _ = rust.record(key, HALF);
        // SAFETY: as the header has it.
        assert_eq!(unsafe { tg_record(c, &Key::of(key), HALF, &mut [0; 55]) }, 0);
    }
    std::thread::sleep(Duration::from_millis(1_100));
    let rows = [
        Row {
            name: "Rust, allow",
            against: 0,
            work: Box::new(|i| rust.allow(of(i)).is_ok_and(|a| a)),
        },
        Row {
            name: "C, tg_allow",
            against: 0,
            // SAFETY: as the header has it.
            work: Box::new(|i| unsafe { tg_allow(c, of(i).as_ptr(), of(i).len()) } == 1),
        },
        Row {
            name: "Rust, hit",
            against: 2,
            work: Box::new(|i| rust.hit(of(i), 1).as_ref().is_ok_and(|d| d.allowed)),
        },
        Row {
            name: "C, tg_hit",
            against: 2,
            work: Box::new(|i| {
                let mut out = MaybeUninit::<Out>::uninit();
                // SAFETY: as the header has it.
                let status = unsafe { tg_hit(c, &Key::of(of(i)), 1, out.as_mut_ptr()) };
                // SAFETY: its first word is written if all went well.
                status == 0 && unsafe { out.as_ptr().cast::<[u8; 8]>().read() }[4] == 1
            }),
        },
    ];
    print(title, &rows, &measure(&rows, rounds, calls));
}
