//! Client of the API server: kube's client on a connection tuned for small requests, with limits, watches and events.
//!
//! Owns the connection's settings and the limits of requests (`policy.rs`). kube's own connector leaves Nagle's
//! algorithm on: then the first request of a connection waits for the server's delayed acknowledgement of the
//! handshake, 40 ms of a restart's 70.

pub mod events;
mod policy;
mod watch;
mod write;

use std::{path::Path, time::Duration};

use http::{HeaderValue, header::USER_AGENT};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt},
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tower::{BoxError, ServiceBuilder, layer::layer_fn, util::MapErrLayer};

use policy::ANSWER_WITHIN;

pub use policy::{RequestPolicy, Retries};
pub use watch::{ObjectKey, WatchEvent, watch, watch_config};
pub use write::WriteError;

/// Idle time of a connection before a keep-alive probe.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A connection with unacknowledged data of this age is closed.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Why a client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("neither a kubeconfig nor a pod's service account was found")]
    NoConfig(#[from] InferConfigError),
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[from] KubeconfigError),
    #[error("the Kubernetes configuration cannot be used")]
    Unusable(#[from] kube::Error),
}

/// The client of a service, by `KUBECONFIG` or the pod's service account. Sends nothing yet.
///
/// All requests except watches end within half a minute. Their user agent is `podwright-<service>`, which audit logs
/// and `managedFields` show.
///
/// # Errors
/// No configuration is found, or its credentials cannot be read.
pub async fn infer(service: &str, policy: RequestPolicy) -> Result<Client, ConnectError> {
    let mut config = Config::infer().await?;
    let name = HeaderValue::try_from(format!("podwright-{service}"))
        .expect("the name of a service is ASCII");
    config.headers.push((USER_AGENT, name));
    Ok(connect(config, policy, Some(ANSWER_WITHIN))?)
}

/// The client of a user, by a kubeconfig file, a context of it, both, or neither.
///
/// # Errors
/// The file cannot be read, does not have this context, or its credentials cannot be used.
pub async fn named(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Client, ConnectError> {
    Ok(client(config(kubeconfig, context).await?)?)
}

/// The configuration of the client that [`named`] returns.
///
/// # Errors
/// As [`named`].
pub async fn config(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Config, ConnectError> {
    if kubeconfig.is_none() && context.is_none() {
        return Ok(Config::infer().await?);
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    Ok(match kubeconfig {
        Some(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
        }
        None => Config::from_kubeconfig(&options).await?,
    })
}

/// The client of a user, with brief retries if the configuration enables retries. Its requests have no deadline.
///
/// # Errors
/// The configuration's credentials or CA cannot be read.
pub fn client(config: Config) -> kube::Result<Client> {
    let retries = if config.default_retry {
        Retries::Brief
    } else {
        Retries::None
    };
    let policy = RequestPolicy {
        retries,
        at_once: None,
    };
    connect(config, policy, None)
}

fn connect(
    config: Config,
    policy: RequestPolicy,
    within: Option<Duration>,
) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // Returns an error: kube is built without proxy support, like this crate.
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false); // The same connector serves https.
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    connector.set_connect_timeout(config.connect_timeout);
    let https = config.rustls_https_connector_with_connector(connector)?;
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(layer_fn(|inner| policy.wrap(within, inner)))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(MapErrLayer::new(BoxError::from))
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}
