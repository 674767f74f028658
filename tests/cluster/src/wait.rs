//! Waiting for a condition with a deadline, instead of sleeping and hoping.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

const INTERVAL: Duration = Duration::from_millis(50);

/// Polls `condition` until it is true; `what` is said when it is not true in time.
pub(crate) async fn until<F>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> F,
) -> Result<()>
where
    F: Future<Output = Result<bool>>,
{
    let deadline = Instant::now() + within;
    while !condition().await? {
        if Instant::now() >= deadline {
            bail!("waited {} s in vain for {what}", within.as_secs());
        }
        sleep(INTERVAL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn says_what_it_waited_for() {
        let error = until("the moon", Duration::from_secs(9), async || Ok(false))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "waited 9 s in vain for the moon");
    }

    #[tokio::test(start_paused = true)]
    async fn ends_with_the_condition() {
        let mut left = 3;
        until("three", Duration::from_secs(9), || {
            left -= 1;
            std::future::ready(Ok(left == 0))
        })
        .await
        .unwrap();
    }
}
