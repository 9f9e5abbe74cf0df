//! Links as an extension module does: against no libpython, so that one wheel serves all of them.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    pyo3_build_config::add_extension_module_link_args();
}
