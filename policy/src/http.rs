//! What every HTTP surface needs: the client's address and whom to trust for it, and the answers.

pub(crate) mod client;
pub(crate) mod problem;
