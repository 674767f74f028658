//! The flags of admission.

use std::net::SocketAddr;

use admission_rules::GateScope;
use clap::{Parser, ValueEnum};
use service_kit::{HasKitArgs, KitArgs};

/// Reviews ContainerRecreateRequests: refuses what cannot be meant and completes the rest.
#[derive(Parser, Clone, Debug)]
#[command(version)]
pub struct Args {
    #[command(flatten)]
    pub kit: KitArgs,

    #[command(flatten)]
    pub bus: bus::Args,

    /// Where the webhook is served over HTTPS.
    #[arg(
        long,
        env = "PODWRIGHT_LISTEN",
        default_value = "0.0.0.0:8443",
        value_name = "ADDRESS"
    )]
    pub listen: SocketAddr,

    /// The namespace of the Service and of the certificates' Secret.
    #[arg(long, env = "POD_NAMESPACE", default_value = "podwright-system")]
    pub namespace: String,

    /// The Service by which the API server calls us: the certificate is made out to it.
    #[arg(long, env = "PODWRIGHT_SERVICE", default_value = "admission")]
    pub service: String,

    /// The Secret that the replicas share their certificates in.
    #[arg(
        long,
        env = "PODWRIGHT_SECRET",
        default_value = "podwright-webhook-certs"
    )]
    pub secret: String,

    /// The Service by which the bus is reached: its certificate is made out to it.
    #[arg(long, env = "PODWRIGHT_BUS_SERVICE", default_value = "nats")]
    pub bus_service: String,

    /// The Secret that NATS mounts its certificate from, and its clients the CA.
    #[arg(
        long,
        env = "PODWRIGHT_BUS_SECRET",
        default_value = "podwright-bus-tls"
    )]
    pub bus_secret: String,

    /// The MutatingWebhookConfiguration that our CA is written into.
    #[arg(
        long,
        env = "PODWRIGHT_WEBHOOK_CONFIGURATION",
        default_value = "podwright"
    )]
    pub webhook_configuration: String,

    /// Which new pods get the readiness gate KruisePodReady. For every-pod the webhook configuration has to send us
    /// every pod too: k8s/components/gate-every-pod sets both.
    #[arg(long, env = "PODWRIGHT_READINESS_GATE", default_value = "kruise")]
    pub readiness_gate: ReadinessGate,
}

/// Which new pods get the readiness gate.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadinessGate {
    /// Those of OpenKruise's workloads, and those that ask for it by label.
    Kruise,
    /// All but static ones.
    EveryPod,
}

impl From<ReadinessGate> for GateScope {
    fn from(gate: ReadinessGate) -> Self {
        match gate {
            ReadinessGate::Kruise => Self::Kruise,
            ReadinessGate::EveryPod => Self::EveryPod,
        }
    }
}

impl HasKitArgs for Args {
    fn kit(&self) -> &KitArgs {
        &self.kit
    }
}
