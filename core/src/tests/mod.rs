//! Models that need private constructors.
