//! Names the shared library as its users load it: by the version that its ABI belongs to.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let version = of("CARGO_PKG_VERSION_MAJOR") + "." + &of("CARGO_PKG_VERSION_MINOR");
    match of("CARGO_CFG_TARGET_OS").as_str() {
        "linux" => argument(&format!("-soname,libtidegate.so.{version}")),
        // A program says by its rpath where it is.
        "macos" => {
            argument(&format!("-install_name,@rpath/libtidegate.{version}.dylib"));
            argument(&format!("-compatibility_version,{version}"));
            let patch = of("CARGO_PKG_VERSION_PATCH");
            argument(&format!("-current_version,{version}.{patch}"));
        }
        _ => {}
    }
}

fn argument(text: &str) {
    println!("cargo:rustc-cdylib-link-arg=-Wl,{text}");
}
