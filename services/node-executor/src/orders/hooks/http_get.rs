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

/// Bytes of the answer's body that are read.
const MAX_BODY: usize = 10 << 10;

const USER_AGENT: &str = concat!("podwright-lifecycle/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpGetError {
    #[error("{0:?} is no host name")]
    Host(String),
    #[error("path or headers are not usable")]
    Request(#[from] http::Error),
    #[error("failed to connect to {0}")]
    Connect(String, #[source] std::io::Error),
    #[error("failed to agree on TLS")]
    Handshake(#[source] std::io::Error),
    #[error("failed to talk HTTP")]
    Http(#[from] hyper::Error),
}

pub(super) struct HttpGet<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(String, String)],
}

// === impl HttpGet ===

impl HttpGet<'_> {
    /// Sends the request and waits for the answer's first kilobytes.
    ///
    /// # Errors
    /// No answer arrived. Any status is an answer, 500 too.
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
        let connector = TlsConnector::from(Arc::new(trusting_config()));
        let stream = connector.connect(name, self.connect().await?).await;
        let stream = stream.map_err(HttpGetError::Handshake)?;
        exchange(stream, self.request(&[])?).await
    }

    async fn connect(&self) -> Result<TcpStream, HttpGetError> {
        let stream = TcpStream::connect((self.host, self.port)).await;
        stream.map_err(|source| HttpGetError::Connect(self.authority(), source))
    }

    fn authority(&self) -> String {
        let (host, port) = (self.host, self.port);
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    /// Builds the request, with the kubelet's default headers where the hook sets none.
    fn request(&self, left_out: &[HeaderName]) -> Result<Request<Empty<Bytes>>, HttpGetError> {
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        let request = Request::get(format!("{slash}{}", self.path));
        let mut request = request.body(Empty::new())?;
        let headers = request.headers_mut();
        for (name, value) in self.headers {
            let name = HeaderName::try_from(name).map_err(http::Error::from)?;
            if !left_out.contains(&name) {
                headers.append(name, header_value(value)?);
            }
        }
        let host = header_value(&self.authority())?;
        let user_agent = HeaderValue::from_static(USER_AGENT);
        let accept = HeaderValue::from_static("*/*");
        headers.entry(header::HOST).or_insert(host);
        headers.entry(header::USER_AGENT).or_insert(user_agent);
        headers.entry(header::ACCEPT).or_insert(accept);
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok(request)
    }
}

fn header_value(value: &str) -> Result<HeaderValue, http::Error> {
    Ok(HeaderValue::try_from(value)?)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Empty<Bytes>>,
) -> Result<(), HttpGetError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut answer = pin!(async {
        let mut body = sender.send_request(request).await?.into_body();
        let mut read = 0;
        while read < MAX_BODY
            && let Some(frame) = body.frame().await.transpose()?
        {
            read += frame.data_ref().map_or(0, Bytes::len);
        }
        Ok(())
    });
    select! {
        result = &mut answer => result,
        // The connection may end before the rest of the answer was read.
        _closed = connection => answer.await,
    }
}

/// True if the server answered the TLS handshake in plain HTTP.
fn is_plain_http(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidMessage(_)))
}

fn trusting_config() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Trusting(provider.clone()));
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth()
}

/// Accepts any certificate, as the kubelet does: servers of hooks have self-signed ones.
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
