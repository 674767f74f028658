//! Which stops have not ended: the driver knows, and a drop of their containers has to wait.

use node_rules::UnfinishedStop;

/// `None` until the journal is loaded.
pub(crate) type UnfinishedStops = Option<Vec<UnfinishedStop>>;
