//! Tidegate for Python: the native module `tidegate._tidegate`, of which the package `tidegate` is
//! made.
//!
//! Nothing here decides: each method reads what it was handed, calls `policy`, and gives the answer
//! a Python form. What Python users read stands in `python/tidegate/_tidegate.pyi`.

// Documented for Python, in the stub.
#![allow(missing_docs)]

mod change;
mod clock;
mod decision;
mod errors;
mod fast;
mod held;
mod http;
mod key;
mod limiter;
mod operations;
mod results;
mod rule;
mod value;
mod waiting;

use pyo3::prelude::*;

/// The engine of the package `tidegate`. Use that, not this.
#[pymodule(gil_used = false)]
mod _tidegate {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::clock::ManualClock;
    #[pymodule_export]
    use crate::decision::{Decision, restore_decision};
    #[pymodule_export]
    use crate::held::{Permit, Reservation};
    #[pymodule_export]
    use crate::http::{Trust, denial, denial_body, unjudged_body, with_fields};
    #[pymodule_export]
    use crate::ip_key;
    #[pymodule_export]
    use crate::limiter::Limiter;
    #[pymodule_export]
    use crate::rule::Rule;
    #[pymodule_export]
    use crate::waiting::Waiting;
    #[cfg(feature = "test-hooks")]
    #[pymodule_export]
    use crate::{hooks::Noop, hooks::panics};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::fast::install::<Limiter>(module.py())?;
        crate::fast::install::<Rule>(module.py())?;
        module.add("IETF_DRAFT", policy::IETF_DRAFT)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// A key for a client address: IPv4-mapped IPv6 is unmapped first, IPv6 is cut to the prefix.
#[pyfunction]
#[pyo3(
    signature = (address, v6_prefix=value::WholeNumber(policy::V6_PREFIX as u64)),
    text_signature = "(address, v6_prefix=56)"
)]
fn ip_key(address: value::Text, v6_prefix: value::WholeNumber) -> PyResult<String> {
    let prefix = u8::try_from(v6_prefix.0).unwrap_or(u8::MAX);
    errors::guard(|| policy::ip_key(&address.0, prefix))
}

#[cfg(feature = "test-hooks")]
mod hooks {
    use pyo3::prelude::*;

    /// The yardstick of the benches: a method that takes a text and returns a truth value.
    #[pyclass(frozen)]
    pub(crate) struct Noop;

    #[pymethods]
    impl Noop {
        #[new]
        fn new() -> Noop {
            Noop
        }
        fn noop(&self, key: &str) -> bool {
            !key.is_empty()
        }
    }

    /// Panics inside, to see what comes out.
    #[pyfunction]
    pub(crate) fn panics() -> PyResult<()> {
        crate::errors::guard(|| panic!("on purpose"))
    }
}
