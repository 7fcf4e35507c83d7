//! A value that one call at a time works on, and that is gone once it is finished.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::{Error, Result};

enum State<T> {
    Idle(T),
    Busy,
    Gone,
}

/// Shared by the JavaScript object and by the calls that still run.
pub struct Handle<T> {
    what: &'static str,
    state: Rc<RefCell<State<T>>>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Handle { what: self.what, state: Rc::clone(&self.state) }
    }
}

impl<T> Handle<T> {
    /// `what` names it in errors: `"the scan"`.
    pub fn new(what: &'static str, value: T) -> Handle<T> {
        Handle { what, state: Rc::new(RefCell::new(State::Idle(value))) }
    }

    /// Lends the value to `work`.
    ///
    /// # Errors
    /// `InvalidInput` while another call has it, `Closed` once it was taken; or those of `work`.
    pub async fn with<R>(&self, work: impl AsyncFnOnce(&mut T) -> Result<R>) -> Result<R> {
        let mut value = self.swap(State::Busy)?;
        let result = work(&mut value).await;
        *self.state.borrow_mut() = State::Idle(value);
        result
    }

    /// Takes the value for good; errors as [`Handle::with`].
    pub fn take(&self) -> Result<T> {
        self.swap(State::Gone)
    }

    fn swap(&self, next: State<T>) -> Result<T> {
        match self.state.replace(State::Busy) {
            State::Idle(value) => {
                *self.state.borrow_mut() = next;
                Ok(value)
            }
            State::Busy => Err(Error::invalid_input(format!("{} is in use by another call", self.what))),
            State::Gone => {
                *self.state.borrow_mut() = State::Gone;
                Err(Error::Closed { what: self.what.to_owned() })
            }
        }
    }
}
