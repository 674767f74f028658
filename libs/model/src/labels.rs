//! Every label, annotation and condition key that the product reads or writes.
//!
//! Those of `apps.kruise.io` are OpenKruise's wire format and must not change;
//! those of `podwright.dev` are ours.

/// Label of a CRR: the pod's name, when it fits into a label value (document 000).
pub const CRR_POD_NAME: &str = "crr.apps.kruise.io/pod-name";
/// Label of a CRR: the pod's uid at admission; immutable.
pub const CRR_POD_UID: &str = "crr.apps.kruise.io/pod-uid";
/// Label of a CRR: the pod's node at admission; immutable.
pub const CRR_NODE_NAME: &str = "crr.apps.kruise.io/node-name";
/// Label of a CRR that has not ended: set at admission, removed after completion.
pub const CRR_ACTIVE: &str = "crr.apps.kruise.io/active";
/// The value of [`CRR_ACTIVE`].
pub const CRR_ACTIVE_TRUE: &str = "true";
/// Annotation of a CRR: the W3C `traceparent` of its creation.
pub const TRACE_PARENT: &str = "podwright.dev/traceparent";
/// Condition of a pod whose sidecars were ended; such a pod may be recreated though it is finished.
pub const SIDECAR_TERMINATED: &str = "SidecarTerminated";
