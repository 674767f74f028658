//! Everything that may happen to the machine.
//!
//! Owns the events and the results of requests. The service makes the events; it owes one `Written` to each
//! `Action::Write` and one `Fetched` to each `Action::FetchMap`.

use model::{
    ids::{NodeName, PodKey, PodUid},
    launch::{BarrierMap, LaunchPod, Started},
};

/// An observation, an answer or a deadline. Events about unknown pods change nothing but the known ConfigMaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The watch of pods starts a list: a pod that it does not show by its end is gone.
    PodListBegun,
    /// A pod with launch barriers, as a list or the watch shows it.
    PodSeen(Box<LaunchPod>),
    /// A pod whose launch cannot be read. A list forgets the pod that was known by this name, which may be another one;
    /// otherwise its last readable state stays.
    PodUnreadable(PodKey),
    /// The pod of that uid was deleted.
    PodGone { pod: PodKey, uid: PodUid },
    /// The list of pods is complete.
    PodListEnded,
    /// The watch of ConfigMaps starts a list.
    MapListBegun,
    /// The ConfigMap of that pod, as a list or the watch shows it.
    MapSeen { pod: PodKey, map: BarrierMap },
    /// A ConfigMap that exists and cannot be read: its last readable state stays.
    MapUnreadable(PodKey),
    /// The ConfigMap of that uid was deleted.
    MapGone { pod: PodKey, uid: String },
    /// The list of ConfigMaps is complete. Before the first one a missing ConfigMap means nothing.
    MapListEnded,
    /// The answer to `Action::Write`.
    Written {
        pod: PodKey,
        uid: PodUid,
        result: WriteResult,
    },
    /// The answer to `Action::FetchMap`.
    Fetched {
        pod: PodKey,
        uid: PodUid,
        result: FetchResult,
    },
    /// A node reports that it started a container. The report may be lost; pod status shows the start later.
    Started { node: NodeName, started: Started },
    /// The moment that `Machine::next_deadline` returned has come.
    Tick,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// The ConfigMap was written, and is now this one.
    MapWritten(BarrierMap),
    /// The ConfigMap was deleted, or will be when its finalizers are done.
    MapDeleted,
    /// The pod was written, and is now this one.
    PodWritten(Box<LaunchPod>),
    /// The pod does not exist any more.
    PodGone,
    /// The pod has another uid, or too many writers at the moment.
    PodBusy,
    /// The ConfigMap exists already, has another uid, or does not exist.
    MapConflict,
    /// The API server did not answer or could not write; or it rejects the write itself, for this reason.
    Failed(Option<String>),
}

/// The result of fetching a pod's ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchResult {
    Found(BarrierMap),
    /// There is no ConfigMap of that name.
    Absent,
    /// The API server did not answer or could not read; or it rejects the request itself, for this reason.
    Failed(Option<String>),
}
