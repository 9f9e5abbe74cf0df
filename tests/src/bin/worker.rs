//! A process that tests spawn, to be killed, stepped or starved: `worker JOB ARGUMENTS`.

#[cfg(target_os = "linux")]
fn main() {
    use tidegate_tests::{
        cold, corrupt, endure, forks, hammer, harm, move_steps, opening, owners, power, share,
        steps, versions,
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["hammer", folder, shared, worker, algorithm] => {
            hammer::work(folder.as_ref(), shared.as_ref(), number(worker) as usize, algorithm);
        }
        ["endure", folder, shared, worker] => {
            endure::work(folder.as_ref(), shared.as_ref(), number(worker) as usize);
        }
        ["steps", folder, operation, most] => {
            steps::run(folder.as_ref(), operation, number(most));
        }
        ["move_steps", folder, most] => move_steps::run(folder.as_ref(), number(most)),
        ["cold", folder, rounds, seed] => cold::run(folder.as_ref(), number(rounds), number(seed)),
        ["change", folder, rounds, seed] => {
            cold::change(folder.as_ref(), number(rounds), number(seed));
        }
        ["forks", folder] => forks::run(folder.as_ref()),
        ["storm", folder, operation, forks] => {
            forks::storm(folder.as_ref(), operation, number(forks));
        }
        ["kept_lock", folder] => forks::kept_lock(folder.as_ref()),
        ["opening", folder] => opening::run(folder.as_ref()),
        ["owners", folder, case] => owners::run(folder.as_ref(), case),
        ["power", folder, case] => power::run(folder.as_ref(), case),
        ["harm", folder, harm] => harm::run(folder.as_ref(), harm),
        ["corrupt", folder, cases, seed] => {
            corrupt::run(folder.as_ref(), number(cases), number(seed));
        }
        ["share", policy] => share::run(policy.as_ref()),
        ["flood", folder, limits, seconds] => {
            versions::flood(folder.as_ref(), limits, number(seconds));
        }
        _ => panic!("no such job: {arguments:?}"),
    }
}

#[cfg(target_os = "linux")]
fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

#[cfg(not(target_os = "linux"))]
fn main() {}
