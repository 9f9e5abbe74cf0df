//! What a stated policy becomes: checked, laid out, and ready to judge by.

pub(crate) mod interned;
pub(crate) mod labels;
pub(crate) mod load;
pub(crate) mod matching;
pub(crate) mod plan;
pub(crate) mod validate;
pub(crate) mod variant;
pub(crate) mod wanted;
