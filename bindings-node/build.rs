//! What a module that Node loads is linked with.

fn main() {
    napi_build::setup();
    // Users get no line tables; the workspace's release profile keeps them for profilers.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--strip-debug");
    }
}
