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
/// Annotation of a CRR: who asked for it, from admission's user info.
pub const REQUESTED_BY: &str = "podwright.dev/requested-by";
/// Annotation of a CRR: [`BACK_OFF_RESPECT`] leaves a crash-loop back-off alone.
pub const BACK_OFF: &str = "podwright.dev/back-off";
/// The value of [`BACK_OFF`] that is looked for.
pub const BACK_OFF_RESPECT: &str = "Respect";
/// Annotation of a pod: written anew to have the kubelet look at the pod now.
pub const NUDGE: &str = "podwright.dev/nudge";
/// Label of a pod whose readiness gate [`KRUISE_POD_READY`] is opened and shut by us.
pub const READINESS_GATE: &str = "podwright.dev/readiness-gate";
/// Readiness gate and condition of a pod: shut while a CRR drains it.
pub const KRUISE_POD_READY: &str = "KruisePodReady";
/// Finalizer of a CRR that holds its pod NotReady; the same string is an annotation in v1alpha1.
pub const UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";
/// Annotation of a static pod's mirror: the uid that the node knows the pod by.
pub const CONFIG_HASH: &str = "kubernetes.io/config.hash";
