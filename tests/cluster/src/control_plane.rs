//! The control plane: etcd, the API server and the controllers, in a namespace of their own.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::{
    cgroup::Cgroups,
    daemon::{Daemon, Place},
    folders,
    folders::Folders,
    kubectl, network,
    pki::Keys,
    plan::{API_PORT, API_SERVER, CONTROL_PLANE, NodeNumber, SERVICE_RANGE},
    programs::Programs,
    proxy,
    state::State,
    users, wait,
};

/// One line per request, after the answer, and no bodies: enough to count.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\n\
                            kind: Policy\n\
                            omitStages: [RequestReceived, ResponseStarted]\n\
                            rules: [{level: Metadata}]\n";

/// Makes what both the control plane and the nodes need: keys, users, the bridge.
pub(crate) async fn prepare(folders: &Folders, nodes: &[NodeNumber]) -> Result<()> {
    let keys = Keys::at(folders);
    keys.make()?;
    users::write(folders, &keys, nodes)?;
    folders::write(&audit_policy(folders), AUDIT_POLICY)?;

    network::create_control_plane(nodes).await?;
    Cgroups::find()?.create(CONTROL_PLANE)
}

/// Starts everything and waits until the API server takes requests.
pub(crate) async fn start(
    folders: &Folders,
    programs: &Programs,
    nodes: &[NodeNumber],
) -> Result<()> {
    let keys = Keys::at(folders);
    etcd(folders, programs)?.start(folders)?;
    api_server(folders, programs, &keys)?.start(folders)?;
    wait_until_ready(folders, programs).await?;
    // Started before the API server is ready, these two exit.
    controller_manager(folders, programs, &keys)?.start(folders)?;
    scheduler(folders, programs)?.start(folders)?;
    // So that tests and tools in this namespace reach service addresses too. The proxy only
    // looks at its node's own addresses, and there is none for the control plane.
    proxy::daemon(folders, programs, Place::ControlPlane, nodes[0])?.start(folders)
}

/// Waits until the API server says it is ready.
pub(crate) async fn wait_until_ready(folders: &Folders, programs: &Programs) -> Result<()> {
    wait::until(
        "the API server to be ready",
        Duration::from_secs(60),
        async || {
            Daemon::check(folders, "etcd")?;
            Daemon::check(folders, "kube-apiserver")?;
            // Each kubectl costs processor time, which the API server needs until it listens.
            if !listens(folders, "kube-apiserver", API_PORT)? {
                return Ok(false);
            }
            let ready = kubectl::run(folders, programs, ["get", "--raw", "/readyz"]).await;
            Ok(ready.is_ok_and(|answer| answer == "ok"))
        },
    )
    .await
}

/// Whether anything in a program's network namespace listens on that port.
fn listens(folders: &Folders, daemon: &str, port: u16) -> Result<bool> {
    let state = State::read(folders)?.context("no cluster is up")?;
    let identity = state.daemons.get(daemon).and_then(|daemon| daemon.identity);
    let pid = identity
        .with_context(|| format!("{daemon} was not started"))?
        .pid;
    let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/tcp6")).unwrap_or_default();
    // Local address with the port in hexadecimal, any remote one, and state 0A: listening.
    let wanted = format!(":{port:04X} 00000000000000000000000000000000:0000 0A ");
    Ok(sockets.contains(&wanted))
}

fn audit_policy(folders: &Folders) -> std::path::PathBuf {
    folders.cluster().join("audit-policy.yaml")
}

fn etcd(folders: &Folders, programs: &Programs) -> Result<Daemon> {
    Ok(
        Daemon::new(folders, Place::ControlPlane, &programs.path("etcd")?).arguments([
            &format!("--data-dir={}", folders.etcd().display()),
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            // The cluster does not outlive the machine, so neither must its data.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]),
    )
}

fn api_server(folders: &Folders, programs: &Programs, keys: &Keys) -> Result<Daemon> {
    let program = programs.path("kube-apiserver")?;
    let daemon = Daemon::new(folders, Place::ControlPlane, &program).arguments([
        "--etcd-servers=http://127.0.0.1:2379",
        "--allow-privileged",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        // Webhooks are called at the pods' own addresses, which are always current.
        "--enable-aggregator-routing=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--kubelet-preferred-address-types=InternalIP",
        // Counts are taken from one file: it is never turned over.
        "--audit-log-maxsize=100000",
    ]);
    Ok(daemon.arguments([
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={API_SERVER}"),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        format!(
            "--token-auth-file={}",
            users::tokens_file(folders).display()
        ),
        format!("--tls-cert-file={}", keys.server.display()),
        format!("--tls-private-key-file={}", keys.server_key.display()),
        format!("--client-ca-file={}", keys.authority.display()),
        format!("--service-account-key-file={}", keys.accounts.display()),
        format!(
            "--service-account-signing-key-file={}",
            keys.accounts_key.display()
        ),
        format!("--kubelet-client-certificate={}", keys.client.display()),
        format!("--kubelet-client-key={}", keys.client_key.display()),
        format!("--audit-policy-file={}", audit_policy(folders).display()),
        format!("--audit-log-path={}", folders.audit_log().display()),
    ]))
}

fn controller_manager(folders: &Folders, programs: &Programs, keys: &Keys) -> Result<Daemon> {
    let program = programs.path("kube-controller-manager")?;
    Ok(Daemon::new(folders, Place::ControlPlane, &program)
        .arguments(as_user(folders, users::CONTROLLER_MANAGER))
        .arguments([
            "--leader-elect=false",
            "--use-service-account-credentials",
            // Each controller first asks for its account's token: with the default of 20 requests
            // a second no pod is made in the first five seconds.
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ])
        .arguments([
            format!(
                "--service-account-private-key-file={}",
                keys.accounts_key.display()
            ),
            format!("--root-ca-file={}", keys.authority.display()),
            format!("--cluster-signing-cert-file={}", keys.authority.display()),
            format!(
                "--cluster-signing-key-file={}",
                keys.authority_key.display()
            ),
        ]))
}

fn scheduler(folders: &Folders, programs: &Programs) -> Result<Daemon> {
    let program = programs.path("kube-scheduler")?;
    Ok(Daemon::new(folders, Place::ControlPlane, &program)
        .arguments(as_user(folders, users::SCHEDULER))
        .arguments(["--leader-elect=false"]))
}

fn as_user(folders: &Folders, user: &str) -> [String; 3] {
    let file = folders.kubeconfig_of(user);
    [
        "kubeconfig",
        "authentication-kubeconfig",
        "authorization-kubeconfig",
    ]
    .map(|flag| format!("--{flag}={}", file.display()))
}
