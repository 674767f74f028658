//! Requests to the API server: done or not, answered or not, soon or late.
//!
//! Owns the delays and the lost answers. A request outlives the process that sent it.

use super::World;
use crate::fault::Fault;

// === impl World ===

impl World {
    /// Sends a request; `answer` gets its result, or `None` if the client sees a failure.
    pub(crate) fn write<R: 'static>(
        &mut self,
        request: impl FnOnce(&mut Self) -> R + 'static,
        answer: impl FnOnce(&mut Self, Option<R>) + 'static,
    ) {
        let there = self.between(1, 25);
        if self.fault(Fault::WriteFailed) {
            return self.after(there, |world| answer(world, None));
        }
        let there = if self.fault(Fault::WriteLate) {
            self.between(200, 5_000)
        } else {
            there
        };
        self.after(there, move |world| {
            let result = request(world);
            let is_lost = world.fault(Fault::WriteAnswerLost);
            let late = if world.options.has(Fault::SlowWrites) {
                Fault::SlowWrites
            } else {
                Fault::WriteAnswerLate
            };
            let back = if world.fault(late) {
                world.between(1_000, 30_000)
            } else {
                world.between(1, 25)
            };
            world.after(back, move |world| {
                answer(world, (!is_lost).then_some(result));
            });
        });
    }
}
