//! `include/tidegate.h` is what cbindgen makes of the sources. `make header` writes it anew.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let made = cbindgen::Builder::new().with_crate(here).with_config(config).generate().unwrap();
    let mut bytes = Vec::new();
    made.write(&mut bytes);
    let (text, path) = (String::from_utf8(bytes).unwrap(), here.join("../include/tidegate.h"));
    if std::env::var_os("TIDEGATE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "include/tidegate.h is not what the sources say: run `make header`");
}
