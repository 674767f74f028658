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
/// Label of a node, and copied from it of a CRR: which kind of node it is (OpenKruise).
pub const NODE_TYPE: &str = "type";
/// The only value of [`NODE_TYPE`] that is copied.
pub const NODE_TYPE_VIRTUAL: &str = "virtual-kubelet";
/// Annotation of a CRR: the W3C `traceparent` of its creation.
pub const TRACE_PARENT: &str = "podwright.dev/traceparent";
/// Condition of a pod whose sidecars were ended; such a pod may be recreated though it is finished.
pub const SIDECAR_TERMINATED: &str = "SidecarTerminated";
/// Annotation of a v1alpha1 CRR: the new containers' statuses as JSON; `status.containerStatusSnapshot` since.
pub const SYNC_CONTAINER_STATUSES: &str = "crr.apps.kruise.io/sync-container-statuses";
/// Annotation of a v1alpha1 CRR: since when its pod is kept NotReady; condition [`PRE_RECREATE_GRACE`] since.
/// Finalizer of the same CRR in both versions.
pub const UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";
/// Condition of a CRR, and its reason: its pod is kept NotReady since the transition.
pub const PRE_RECREATE_GRACE: &str = "PreRecreateGrace";
/// Begins the name under which a v1beta1 CRR keeps a v1alpha1 annotation that cannot be read.
pub const UNREADABLE_PREFIX: &str = "podwright.dev/unreadable-";
/// Annotation of a CRR: the user whose request created it, as the API server authenticated them; immutable.
pub const REQUESTED_BY: &str = "podwright.dev/requested-by";
/// Readiness gate of a pod that can be taken out of service while its containers are recreated, and its condition.
pub const KRUISE_POD_READY: &str = "KruisePodReady";
/// Label of a pod: with [`READINESS_GATE_TRUE`] it gets the gate [`KRUISE_POD_READY`]; every gated pod bears it.
pub const READINESS_GATE: &str = "podwright.dev/readiness-gate";
/// The value of [`READINESS_GATE`].
pub const READINESS_GATE_TRUE: &str = "true";
/// The API group of OpenKruise, and of CRRs.
pub const KRUISE_GROUP: &str = "apps.kruise.io";
/// Annotation of a static pod's mirror: the API server's view of a pod that the kubelet has from a file.
pub const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
/// Annotation of a static pod's mirror: the uid that the node knows the pod by.
pub const CONFIG_HASH: &str = "kubernetes.io/config.hash";
/// Annotation of a CRR: with [`BACK_OFF_RESPECT`] a crash-loop back-off is left alone.
pub const BACK_OFF: &str = "podwright.dev/back-off";
/// The value of [`BACK_OFF`] that is looked for.
pub const BACK_OFF_RESPECT: &str = "Respect";
/// Annotation of a pod: written anew to have the kubelet look at the pod now.
pub const NUDGE: &str = "podwright.dev/nudge";
/// Label of the CRRs of one `kubectl crr restart`: the random word that their names end with.
pub const RESTART: &str = "podwright.dev/restart";
/// Label of a pod with launch barriers, and of its ConfigMap: with [`LAUNCH_BARRIER_TRUE`] the barrier-manager sees them.
pub const LAUNCH_BARRIER: &str = "podwright.dev/launch-barrier";
/// The value of [`LAUNCH_BARRIER`].
pub const LAUNCH_BARRIER_TRUE: &str = "true";
/// Annotation of a pod: with [`LAUNCH_PRIORITY_ORDERED`] its containers start in the order of the pod (document 002).
pub const LAUNCH_PRIORITY: &str = "apps.kruise.io/container-launch-priority";
/// The value of [`LAUNCH_PRIORITY`].
pub const LAUNCH_PRIORITY_ORDERED: &str = "Ordered";
/// Annotation of a pod: the key of the lowest level that the kubelet was told of. Its change is the kubelet's nudge.
pub const LAUNCH_LEVEL: &str = "podwright.dev/launch-level";
/// Annotation of a pod: with [`LAUNCH_COMPLETED_TRUE`] all its levels are open.
pub const LAUNCH_COMPLETED: &str = "apps.kruise.io/container-launch-priority-completed";
/// The value of [`LAUNCH_COMPLETED`].
pub const LAUNCH_COMPLETED_TRUE: &str = "true";
