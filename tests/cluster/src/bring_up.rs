//! The order in which a cluster starts, and what is waited for in between.

use anyhow::{Context, Result};
use futures::future::try_join_all;
use tokio::time::Instant;

use crate::{
    cluster::Cluster,
    control_plane, coredns,
    images::Image,
    node,
    plan::NodeNumber,
    progress::say,
    state::{Phase, State},
};

impl Cluster {
    /// Starts everything, and waits until pods can be created and find each other by name.
    pub(crate) async fn bring_up(&self, nodes: Vec<NodeNumber>, images: &[Image]) -> Result<()> {
        let started = Instant::now();
        let (folders, programs) = (&self.folders, &self.programs);
        let mut state = State::new(nodes.clone(), programs.clone())?;
        state.write(folders)?;
        state.made_folders = node::make_mount_points()?;
        state.write(folders)?;

        say(format_args!(
            "starting the control plane and {} nodes …",
            nodes.len()
        ));
        control_plane::prepare(folders, &nodes).await?;
        let runtimes = nodes
            .iter()
            .map(|node| self.start_runtime(*node, &nodes, images));
        tokio::try_join!(
            control_plane::start(folders, programs, &nodes),
            try_join_all(runtimes)
        )?;
        for node in &nodes {
            node::start_kubelet(folders, programs, *node)?;
        }
        say(format_args!(
            "waiting for the nodes … ({:.1} s)",
            started.elapsed().as_secs_f32()
        ));
        tokio::try_join!(
            coredns::deploy(folders, programs),
            self.wait_for_nodes(&nodes),
        )?;
        say(format_args!(
            "waiting for the name server … ({:.1} s)",
            started.elapsed().as_secs_f32()
        ));
        self.wait_for_pods().await?;
        State::update(folders, |state| state.phase = Phase::Ready)?;
        say(format_args!(
            "the cluster is up ({:.1} s)",
            started.elapsed().as_secs_f32()
        ));
        Ok(())
    }

    /// All images are loaded here, while the API server has yet to start: nothing waits for them then.
    async fn start_runtime(
        &self,
        node: NodeNumber,
        nodes: &[NodeNumber],
        images: &[Image],
    ) -> Result<()> {
        node::start_runtime(&self.folders, &self.programs, node, nodes).await?;
        try_join_all(
            images
                .iter()
                .map(|image| node::load(&self.folders, node, image)),
        )
        .await?;
        Ok(())
    }

    async fn wait_for_nodes(&self, nodes: &[NodeNumber]) -> Result<()> {
        let waits = nodes.iter().map(async |node| {
            let name = format!("node/{}", node.name());
            // kubectl waits for the creation of one object only.
            for condition in ["--for=create", "--for=condition=Ready"] {
                self.kubectl(["wait", condition, "--timeout=90s", &name])
                    .await?;
            }
            Ok::<_, anyhow::Error>(())
        });
        try_join_all(waits)
            .await
            .context("the nodes did not become ready; see the logs of kubelet")?;
        Ok(())
    }

    /// The name server answers, and pods can be created in the default namespace.
    async fn wait_for_pods(&self) -> Result<()> {
        let wait = |arguments: [&'static str; 4]| {
            self.kubectl(["wait", "--timeout=60s"].into_iter().chain(arguments))
        };
        tokio::try_join!(
            wait([
                "--for=condition=Available",
                "-n",
                "kube-system",
                "deployment/coredns"
            ]),
            wait(["--for=create", "-n", "default", "serviceaccount/default"]),
        )
        .context("the name server did not come up; see the logs of coredns")?;
        Ok(())
    }
}
