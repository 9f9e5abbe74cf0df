//! Units of time and of tokens, so that one is not taken for another.

use std::ops::{Add, Sub};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u64);

        impl Add for $name {
            type Output = $name;
            #[inline(always)]
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }

        impl Sub for $name {
            type Output = $name;
            #[inline(always)]
            fn sub(self, other: $name) -> $name {
                $name(self.0 - other.0)
            }
        }

        impl $name {
            #[inline(always)]
            pub(crate) fn saturating_sub(self, other: $name) -> $name {
                $name(self.0.saturating_sub(other.0))
            }
        }
    };
}

unit! {
    /// Nanoseconds, since the clock's start or between two moments.
    Nanos
}
unit! {
    /// Ticks of a bucket word: 10^k nanoseconds each, by the word's own scale.
    Ticks
}
unit! {
    /// Thousandths of a token.
    MilliTokens
}

impl MilliTokens {
    /// Thousandths in a token.
    pub(crate) const PER_TOKEN: u64 = 1000;

    #[inline(always)]
    pub(crate) fn of_tokens(tokens: u64) -> MilliTokens {
        MilliTokens(Self::PER_TOKEN * tokens)
    }
}
