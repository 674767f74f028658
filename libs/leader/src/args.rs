//! The flags of a service with a leader.

/// Flags of the leader's Lease.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "leader")]
pub struct Args {
    /// Namespace of the leader's Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "podwright-system")]
    pub namespace: String,

    /// Name of this replica in the Lease, unique among the replicas. Default: the name of the service.
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Service {
        #[command(flatten)]
        leader: Args,
    }

    #[test]
    fn the_identity_is_optional() {
        let parse = |flags: &[&str]| Service::parse_from([&["service"], flags].concat()).leader;
        assert_eq!(parse(&["--identity", "a"]).identity.as_deref(), Some("a"));
        assert_eq!(parse(&["--namespace", "b"]).namespace, "b");
    }
}
