//! One GET of a hook, over HTTP/1.1.
//!
//! Owns the kubelet's rules for it: any answer is a success, certificates are not checked, no proxy, no
//! redirect is followed, and https that is answered in plain HTTP is tried again as http.

use std::{pin::pin, sync::Arc};

use http::{HeaderName, HeaderValue, Request, header};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use model::order::HttpScheme;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    select,
};
use tokio_rustls::TlsConnector;

/// As much of the answer's body as is read.
const MAX_BODY: usize = 10 << 10;

const USER_AGENT: &str = concat!("podwright-lifecycle/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpGetError {
    #[error("{0:?} is no host name")]
    Host(String),
    #[error("path or headers are not usable")]
    Request(#[source] http::Error),
    #[error("failed to set TLS up")]
    Tls(#[source] rustls::Error),
    #[error("failed to connect to {address}")]
    Connect {
        address: String,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to agree on TLS")]
    Handshake(#[source] std::io::Error),
    #[error("failed to talk HTTP")]
    Http(#[source] hyper::Error),
}

/// What is called.
pub(super) struct HttpGet<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(String, String)],
}

// === impl HttpGet ===

impl HttpGet<'_> {
    /// Calls, and waits for the answer's first kilobytes.
    ///
    /// # Errors
    /// No answer came; a status of 500 is none.
    pub(super) async fn call(&self, scheme: HttpScheme) -> Result<(), HttpGetError> {
        match scheme {
            HttpScheme::Http => exchange(self.connect().await?, self.request(&[])?).await,
            HttpScheme::Https => match self.call_tls().await {
                Err(HttpGetError::Handshake(error)) if is_plain_http(&error) => {
                    let request = self.request(&[header::AUTHORIZATION])?;
                    exchange(self.connect().await?, request).await
                }
                result => result,
            },
        }
    }

    async fn call_tls(&self) -> Result<(), HttpGetError> {
        let name = ServerName::try_from(self.host.to_owned())
            .map_err(|_| HttpGetError::Host(self.host.to_owned()))?;
        let connector = TlsConnector::from(Arc::new(trusting_config()?));
        let stream = connector
            .connect(name, self.connect().await?)
            .await
            .map_err(HttpGetError::Handshake)?;
        exchange(stream, self.request(&[])?).await
    }

    async fn connect(&self) -> Result<TcpStream, HttpGetError> {
        TcpStream::connect((self.host, self.port))
            .await
            .map_err(|source| HttpGetError::Connect {
                address: self.authority(),
                source,
            })
    }

    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The request, with the kubelet's defaults for what the hook does not set.
    fn request(&self, left_out: &[HeaderName]) -> Result<Request<Empty<Bytes>>, HttpGetError> {
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        let mut request = Request::get(format!("{slash}{}", self.path))
            .body(Empty::new())
            .map_err(HttpGetError::Request)?;
        let headers = request.headers_mut();
        for (name, value) in self.headers {
            let name =
                HeaderName::try_from(name).map_err(|error| HttpGetError::Request(error.into()))?;
            let value = HeaderValue::try_from(value)
                .map_err(|error| HttpGetError::Request(error.into()))?;
            if !left_out.contains(&name) {
                headers.append(name, value);
            }
        }
        let authority = HeaderValue::try_from(self.authority())
            .map_err(|error| HttpGetError::Request(error.into()))?;
        headers.entry(header::HOST).or_insert(authority);
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(USER_AGENT));
        headers
            .entry(header::ACCEPT)
            .or_insert(HeaderValue::from_static("*/*"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok(request)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Empty<Bytes>>,
) -> Result<(), HttpGetError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(HttpGetError::Http)?;
    let mut answer = pin!(async {
        let response = sender.send_request(request).await?;
        let mut body = response.into_body();
        let mut read = 0;
        while read < MAX_BODY {
            let Some(frame) = body.frame().await.transpose()? else {
                break;
            };
            read += frame.data_ref().map_or(0, Bytes::len);
        }
        Ok::<(), hyper::Error>(())
    });
    let result = select! {
        result = &mut answer => result,
        // The connection may end before the rest of the answer was taken from it.
        _closed = connection => answer.await,
    };
    result.map_err(HttpGetError::Http)
}

/// Whether the other side answered the TLS greeting in another language.
fn is_plain_http(error: &std::io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidMessage(_)))
}

fn trusting_config() -> Result<ClientConfig, HttpGetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Trusting(provider.clone()));
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(HttpGetError::Tls)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

/// Takes any certificate: a hook's server has one for itself, and the kubelet asks for no better.
#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
