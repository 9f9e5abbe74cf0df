//! What a user of the packed crate writes first. `deploy/crates.sh` builds it outside the
//! repository, with the feature `yaml` and without.

use tidegate::{Code, Limiter};

fn main() {
    let limiter = Limiter::new(["5/10s window", "20/min"]).unwrap();
    assert_eq!((0..9).filter(|_| limiter.allow("alice").unwrap()).count(), 5);

    std::fs::write("policy.json", r#"{"version": 1, "rules": {"a": {"limits": "1/h"}}}"#).unwrap();
    let policy = Limiter::from_file("policy.json").unwrap();
    assert!(policy.hit("alice", 1).unwrap().allowed && !policy.hit("alice", 1).unwrap().allowed);

    std::fs::write("policy.yaml", "version: 1\nrules: { a: { limits: 1/h } }\n").unwrap();
    let yaml = Limiter::from_file("policy.yaml");
    if cfg!(feature = "yaml") {
        assert_eq!(yaml.unwrap().rules(), ["a"]);
    } else {
        let error = yaml.unwrap_err();
        assert!(error.code() == Code::Policy && error.to_string().contains("feature \"yaml\""));
    }

    let _ = std::fs::remove_dir_all("counts");
    let shared = || Limiter::builder().limits("1/h").store("file:counts").build();
    if cfg!(target_os = "linux") {
        let (bot, gateway) = (shared().unwrap(), shared().unwrap());
        assert!(bot.allow("alice").unwrap() && !gateway.allow("alice").unwrap());
    } else {
        assert!(shared().unwrap_err().to_string().contains("need Linux"));
    }
}
