//! The repository's rules, as functions that say what breaks them.
//!
//! Owns the import table, the purity of the rules crates, and the shape of source files. Each check takes what
//! it looks at as an argument and returns one line per fault, so that the checks themselves are tested.

pub mod containers;
pub mod files;
pub mod imports;
pub mod krew;
pub mod tree;
pub mod words;
