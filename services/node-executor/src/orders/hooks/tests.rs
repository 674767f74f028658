//! Hooks against servers in this process.

use std::{path::Path, sync::Arc};

use cri::SocketCandidates;
use model::order::HttpScheme;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

/// The answer of a test server to any request.
const ERROR_500: &str = "HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nbad";

fn no_runtime() -> Cri {
    Cri::new(SocketCandidates::new(Some(Path::new(
        "/nonexistent/cri.sock",
    ))))
}

fn instance() -> Instance {
    testkit::instance("main", "abc")
}

/// A server on a free port; it records its requests.
struct Server {
    port: u16,
    requests: mpsc::UnboundedReceiver<String>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(answer: &'static str, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tx, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                match &tls {
                    None => serve(stream, answer, &tx).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            serve(stream, answer, &tx).await;
                        }
                    }
                }
            }
        });
        Self {
            port,
            requests,
            _tasks: tasks,
        }
    }

    fn hook(&self, scheme: HttpScheme, headers: &[(&str, &str)]) -> PreStop {
        PreStop::HttpGet {
            scheme,
            host: Some("127.0.0.1".to_owned()),
            port: self.port,
            path: "drain?now=1".to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }
}

async fn serve(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    answer: &str,
    tx: &mpsc::UnboundedSender<String>,
) {
    let mut request = vec![0; 4096];
    let length = stream.read(&mut request).await.unwrap_or(0);
    let text = String::from_utf8_lossy(&request[..length]).to_lowercase();
    if text.starts_with("get") {
        tx.send(text).unwrap();
    }
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}

fn self_signed() -> TlsAcceptor {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["another.name".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![cert.der().clone()],
            rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn run(hook: &PreStop) -> HookResult {
    run_hook(&no_runtime(), &instance(), hook, LIMIT).await
}

#[tokio::test]
async fn any_http_answer_is_a_success_and_the_defaults_are_sent() {
    let mut server = Server::start(ERROR_500, None).await;
    let hook = server.hook(HttpScheme::Http, &[("X-Token", "t"), ("Host", "named")]);
    assert_eq!(run(&hook).await, HookResult::Succeeded);
    let request = server.requests.recv().await.unwrap();
    assert!(
        request.starts_with("get /drain?now=1 http/1.1"),
        "{request}"
    );
    for line in [
        "x-token: t",
        "host: named",
        "accept: */*",
        "user-agent: podwright",
    ] {
        assert!(request.contains(line), "{line} is missing in {request}");
    }
}

#[tokio::test]
async fn https_takes_any_certificate() {
    let mut server = Server::start(ERROR_500, Some(self_signed())).await;
    let hook = server.hook(HttpScheme::Https, &[]);
    assert_eq!(run(&hook).await, HookResult::Succeeded);
    assert!(server.requests.recv().await.is_some());
}

#[tokio::test]
async fn https_answered_in_plain_http_is_tried_again_without_the_password() {
    let mut server = Server::start(ERROR_500, None).await;
    let hook = server.hook(
        HttpScheme::Https,
        &[("Authorization", "secret"), ("X", "y")],
    );
    assert_eq!(run(&hook).await, HookResult::Succeeded);
    let request = server.requests.recv().await.unwrap();
    assert!(
        request.contains("x: y") && !request.contains("secret"),
        "{request}"
    );
}

#[tokio::test]
async fn a_refused_connection_fails_with_its_address() {
    let server = Server::start(ERROR_500, None).await;
    let hook = server.hook(HttpScheme::Http, &[]);
    let tcp = PreStop::TcpSocket {
        host: Some("127.0.0.1".to_owned()),
        port: server.port,
    };
    assert_eq!(run(&tcp).await, HookResult::Succeeded);
    drop(server);
    for hook in [hook, tcp] {
        let HookResult::Failed { message } = run(&hook).await else {
            panic!("no failure");
        };
        assert!(
            message.contains("failed to connect to 127.0.0.1:"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn sleep_sleeps_and_the_limit_cuts_it_off() {
    let hook = |seconds| PreStop::Sleep {
        duration: Duration::from_secs(seconds),
    };
    let start = time::Instant::now();
    assert_eq!(run(&hook(4)).await, HookResult::Succeeded);
    assert_eq!(start.elapsed().as_secs(), 4);
    assert_eq!(run(&hook(400)).await, HookResult::CutOff);
    assert_eq!(start.elapsed().as_secs(), 14);
}

#[tokio::test]
async fn a_hook_that_needs_a_runtime_that_is_away_fails() {
    let exec = PreStop::Exec {
        command: vec!["true".to_owned()],
    };
    let no_host = PreStop::TcpSocket {
        host: None,
        port: 80,
    };
    for hook in [exec, no_host] {
        let HookResult::Failed { message } = run(&hook).await else {
            panic!("no failure");
        };
        assert!(message.contains("cri.sock (does not exist)"), "{message}");
    }
}

#[test]
fn output_is_cut_to_what_an_event_can_bear() {
    assert_eq!(excerpt(b"  no space left\n"), "no space left");
    assert_eq!(excerpt(&[b'a'; 1000]).len(), MAX_OUTPUT);
}
