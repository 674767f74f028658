//! The way to the API server: kube's client on a connection tuned for small requests; events, told the same by all.
//!
//! Owns the connection's settings and how long a request is waited for; `patience.rs` says why. kube's own connector
//! leaves Nagle's algorithm on, so that the first request of a connection waits for the server's delayed acknowledgement
//! of the handshake: 40 ms of a restart's 70.

pub mod events;
mod patience;
mod watches;
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

use patience::{Patience, SERVICE_WITHIN};

pub use patience::Retries;
pub use watches::{parse_version, watch_config};
pub use write::WriteError;

/// A peer that is silent for this long is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A connection whose data nobody acknowledges for this long is given up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("neither a kubeconfig nor a pod's service account was found")]
    NoConfig(#[from] InferConfigError),
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[from] KubeconfigError),
    #[error("the Kubernetes configuration cannot be used")]
    Unusable(#[from] kube::Error),
}

/// A service's client of the API server that `KUBECONFIG` or the pod's service account names. Nothing is sent yet. All
/// its requests but watches end within half a minute, and bear the service's name: audit logs and `managedFields` show it.
///
/// # Errors
/// No configuration is found, or its credentials cannot be read.
pub async fn infer(service: &'static str, retries: Retries) -> Result<Client, ConnectError> {
    let patience = Patience {
        within: Some(SERVICE_WITHIN),
        retries,
    };
    let mut config = Config::infer().await?;
    let name = HeaderValue::from_static(service);
    config.headers.push((USER_AGENT, name));
    Ok(connect(config, patience)?)
}

/// A client of the API server that a person names: by a kubeconfig file, a context of it, both, or neither.
///
/// # Errors
/// The file cannot be read, has no such context, or its credentials cannot be used.
pub async fn named(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Client, ConnectError> {
    Ok(client(config(kubeconfig, context).await?)?)
}

/// The configuration that [`named`] makes a client of.
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

/// A person's client by a configuration, with brief retries where the configuration has retries on. It waits as long as
/// the person does.
///
/// # Errors
/// The configuration's credentials or CA cannot be read.
pub fn client(config: Config) -> kube::Result<Client> {
    let retries = if config.default_retry {
        Retries::Brief
    } else {
        Retries::None
    };
    let patience = Patience {
        within: None,
        retries,
    };
    connect(config, patience)
}

fn connect(config: Config, patience: Patience) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // It says that it cannot: kube is built without proxies, and so are we.
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false); // https goes over it too.
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    connector.set_connect_timeout(config.connect_timeout);
    let https = config.rustls_https_connector_with_connector(connector)?;
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(layer_fn(|inner| patience.wrap(inner)))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(MapErrLayer::new(BoxError::from))
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}
