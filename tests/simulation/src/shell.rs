//! The three services as thin as they are: wait for an event, ask the machine, carry the effects out.
//!
//! Owns that loop's IO in the simulated world. Every decision is the machine's.

pub(crate) mod executor;
pub(crate) mod manager;
pub(crate) mod scheduler;

/// Declares the names of an enum's variants: a list of all, and the name of one.
macro_rules! kinds {
    ($all:ident, $name_of:ident, $type:ty: $($pattern:pat => $name:literal,)*) => {
        pub(crate) const $all: &[&str] = &[$($name,)*];

        fn $name_of(it: &$type) -> &'static str {
            match it {
                $($pattern => $name,)*
            }
        }
    };
}

pub(crate) use kinds;
