//! Waiting for a condition, with the last state told when it never comes.

use std::{fmt::Display, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout_at};

/// More than anything takes on a busy machine, unless a test breaks something.
pub const PATIENCE: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What one look at the world gave.
pub enum Look<T> {
    Found(T),
    /// What is there instead.
    NotYet(String),
}

impl Look<()> {
    /// Found when it is so.
    pub fn is(so: bool, state: impl Display) -> Self {
        if so {
            Self::Found(())
        } else {
            Self::NotYet(state.to_string())
        }
    }
}

/// Looks until it finds. A look that fails is a state like any other: the world may be broken on purpose.
///
/// # Errors
/// It was not found in time; the error tells the last state.
pub async fn wait_for<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Look<T>>,
) -> Result<T> {
    let deadline = Instant::now() + within;
    let mut last = "nothing: the first look did not end".to_owned();
    loop {
        match timeout_at(deadline, look()).await {
            Ok(Ok(Look::Found(found))) => return Ok(found),
            Ok(Ok(Look::NotYet(state))) => last = state,
            Ok(Err(error)) => last = format!("{error:#}"),
            Err(_) => {}
        }
        if Instant::now() >= deadline {
            bail!("waited {within:?} in vain for {what}; last seen: {last}");
        }
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tells_the_last_state_when_it_never_comes() {
        let look = async || Ok(Look::<()>::NotYet("a cloud".to_owned()));
        let error = wait_for("the moon", Duration::ZERO, look)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "waited 0ns in vain for the moon; last seen: a cloud"
        );
    }
}
