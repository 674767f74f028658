//! The leadership of a replica, and work that runs only while it lasts.

use tokio::{select, sync::watch};
use tracing::info;

/// The current leadership of this replica, with waits for its changes.
#[derive(Clone, Debug)]
pub struct Leadership(pub(crate) watch::Receiver<bool>);

// === impl Leadership ===

impl Leadership {
    pub fn is_held(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once this replica leads; never if the elector has ended.
    pub async fn wait_held(&mut self) {
        if self.0.wait_for(|held| *held).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns once this replica does not lead, or the elector has ended.
    pub async fn wait_lost(&mut self) {
        // Without an elector there are no renewals: the leadership is lost too.
        let _gone = self.0.wait_for(|held| !*held).await;
    }

    /// Runs `work` while this replica leads, from its beginning in each period of leadership, and `lost` after each
    /// period. Returns the result of the work once it ends by itself.
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
