//! The kinds of faults, and how often each happens.
//!
//! Owns the list. Where a fault takes effect is in `world/` and `shell/`.

/// Declares an enum with the name and the probability of each variant.
macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $probability:expr;)*) => {
        /// Something that goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            pub const ALL: &[Self] = &[$(Self::$fault,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => stringify!($fault),)*
                }
            }

            /// Of each occasion.
            pub(crate) fn probability(self) -> f64 {
                match self {
                    $(Self::$fault => $probability,)*
                }
            }
        }
    };
}

faults! {
    OrderLost = 0.08;
    OrderTwice = 0.08;
    /// Up to 5 s: longer than an answer is waited for.
    OrderLate = 0.08;
    AnswerLost = 0.08;
    /// Up to 40 s.
    AnswerLate = 0.05;
    ReportLost = 0.1;
    ReportTwice = 0.1;
    /// Up to 40 s.
    ReportLate = 0.1;
    AcknowledgementLost = 0.1;
    /// Another node sends the report.
    ReportForged = 0.03;
    StartLost = 0.3;
    /// Done up to 5 s late, also if the client crashes meanwhile.
    WriteLate = 0.04;
    /// Done, and the client sees a failure.
    WriteAnswerLost = 0.04;
    /// The answer comes up to 30 s late.
    WriteAnswerLate = 0.03;
    /// Instead of that probability, where it is a trigger.
    SlowWrites = 0.4;
    WriteFailed = 0.04;
    /// The written object comes back in a form that does not decode (defect S4).
    AnswerUnreadable = 0.2;
    /// An event of a watch comes up to 8 s late, and all behind it.
    WatchLag = 0.02;
    /// A list shows an earlier state of requests and ConfigMaps.
    StaleList = 0.4;
    SchedulerCrash = 0.015;
    ExecutorCrash = 0.015;
    /// An executor that crashed is back after up to 40 s.
    LongDowntime = 0.15;
    /// An executor is asked to end, and is ended some seconds later.
    ExecutorUpdate = 1.0;
    ManagerCrash = 0.01;
    HookFails = 0.1;
    /// The runtime reports a failure; the stop may have worked.
    StopFails = 0.05;
    RuntimeSilent = 0.05;
    /// Planned once or several times per history, each with this probability per draw.
    BusAway = 1.0;
    NodeAway = 1.0;
    RuntimeAway = 1.0;
    WatchRestart = 1.0;
    TwoLeaders = 1.0;
    LeaderChange = 1.0;
    ForeignWrite = 1.0;
    ContainerEnds = 1.0;
    /// A process stands still for up to 4 s; what happens meanwhile reaches it afterwards.
    Frozen = 1.0;
    /// A wall clock is set, or differs from the others from the start. Not in scenarios with times that users set (finding
    /// M6).
    ClockStep = 1.0;
    /// A list shows an earlier state of a pod (finding M1).
    StalePod = 1.0;
    /// A process stands still for up to two minutes (findings M2 and M15).
    FrozenLong = 1.0;
}

// === impl Fault ===

impl Fault {
    /// True if the normal run leaves it out, because a known defect makes it a violation.
    pub fn is_trigger(self) -> bool {
        matches!(
            self,
            Self::StalePod | Self::FrozenLong | Self::AnswerUnreadable
        )
    }

    /// True if it is only a more frequent form of another fault.
    pub(crate) fn is_amplifier(self) -> bool {
        self == Self::SlowWrites
    }
}
