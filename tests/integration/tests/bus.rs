//! The bus against real NATS servers: the one we ship with and the oldest supported.
//!
//! Owns the promises of `bus`: outcomes of requests, outages, what a broken message does. What orders mean is
//! tested with the services.

#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

#[path = "bus/messages.rs"]
mod messages;
#[path = "bus/outages.rs"]
mod outages;
#[path = "bus/security.rs"]
mod security;
#[path = "bus/words.rs"]
mod words;

/// One test for each release of the server.
macro_rules! for_each_release {
    ($($test:ident)*) => {
        mod current {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(integration::Release::Current).await;
            }
        )*}

        mod oldest {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(integration::Release::Oldest).await;
            }
        )*}
    };
}
pub(crate) use for_each_release;
