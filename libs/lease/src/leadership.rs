//! What a replica knows of its leadership, and work that is done only while it lasts.

use tokio::{select, sync::watch};
use tracing::info;

/// Whether this replica leads; changes are waited for.
#[derive(Clone, Debug)]
pub struct Leadership(pub(crate) watch::Receiver<bool>);

// === impl Leadership ===

impl Leadership {
    pub fn is_held(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once this replica leads; never when the elector is gone.
    pub async fn wait_held(&mut self) {
        if self.0.wait_for(|held| *held).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns once this replica does not lead, or the elector is gone.
    pub async fn wait_lost(&mut self) {
        // An elector that is gone renews nothing: lost as well.
        let _gone = self.0.wait_for(|held| !*held).await;
    }

    /// Works while this replica leads, and begins anew each time it comes to lead; `lost` is told each time that it no
    /// longer does. Returns with the work's own end.
    pub async fn lead<W: Future>(
        &mut self,
        mut work: impl FnMut() -> W,
        lost: impl Fn(),
    ) -> W::Output {
        loop {
            self.wait_held().await;
            info!("Leading");
            select! {
                end = work() => return end,
                () = self.wait_lost() => {
                    info!("No longer leading");
                    lost();
                }
            }
        }
    }
}
