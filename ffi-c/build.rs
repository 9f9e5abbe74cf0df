//! Names the shared library as its users load it: by the version that its ABI belongs to.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}"));
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if let (true, Ok(major), Ok(minor)) = (linux, version("MAJOR"), version("MINOR")) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtidegate.so.{major}.{minor}");
    }
}
