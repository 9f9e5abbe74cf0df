//! How limits count: one file for each algorithm.

pub(crate) mod bucket;
pub(crate) mod counter;
pub(crate) mod fixed;
pub(crate) mod permit;
pub(crate) mod stamp;
pub(crate) mod window;
