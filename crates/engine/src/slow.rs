//! What may take long: a call of git, and a server elsewhere.
//!
//! Owns the one thing that is done before the first of them. Most hooks need neither, and do not
//! pay for a watch over them.

use std::sync::{Mutex, PoisonError};

type Act = Box<dyn FnOnce() + Send>;

static BEFORE: Mutex<Option<Act>> = Mutex::new(None);

/// Does this when something slow begins for the first time in this process.
pub fn before_the_first(act: impl FnOnce() + Send + 'static) {
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
}

pub(crate) fn begins() {
    let act = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(act) = act {
        act();
    }
}
