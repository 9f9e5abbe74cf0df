//! What every HTTP surface needs, once for all of them: the tower layer, Python and Node.
//!
//! [`ProxyTrust`] finds the client's address. [`Denial`] and [`unjudged`] make the bodies of
//! refusals. The module serves this crate's own surfaces and is no part of the public API.

pub(crate) mod client;
pub(crate) mod problem;

pub use self::client::{ProxyTrust, read_address};
pub use self::problem::{Denial, PROBLEM_JSON, unjudged};
