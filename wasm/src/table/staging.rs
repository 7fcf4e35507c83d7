//! Staging: small new files stay in memory, to be written by the commit that names them; larger ones go to the store at once.

use std::cell::RefCell;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::store::{DirId, ObjectWriter, Path, Store};

/// Files up to this size are part of the commit.
pub(crate) const MAX_STAGED_BYTES: u64 = 128 << 10;

/// The small files of one operation.
pub(crate) type Staged = Rc<RefCell<Vec<(Path, Bytes)>>>;

/// One new file.
pub(crate) struct StagedWriter {
    store: Rc<dyn Store>,
    dir: DirId,
    path: Path,
    staged: Staged,
    parts: Vec<Bytes>,
    size_bytes: u64,
    /// Set once the file is too large to be staged.
    spilled: Option<Box<dyn ObjectWriter>>,
}

impl StagedWriter {
    pub(crate) fn new(store: Rc<dyn Store>, dir: DirId, path: Path, staged: Staged) -> StagedWriter {
        StagedWriter { store, dir, path, staged, parts: Vec::new(), size_bytes: 0, spilled: None }
    }
}

#[async_trait(?Send)]
impl ObjectWriter for StagedWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.size_bytes = self.size_bytes.saturating_add(bytes.len() as u64);
        if let Some(spilled) = &mut self.spilled {
            return spilled.write(bytes).await;
        }
        self.parts.push(bytes);
        if self.size_bytes > MAX_STAGED_BYTES {
            let mut writer = self.store.writer(&self.dir, &self.path).await?;
            for part in std::mem::take(&mut self.parts) {
                if let Err(error) = writer.write(part).await {
                    // The first error is the one that counts.
                    let _ = writer.abort().await;
                    return Err(error);
                }
            }
            self.spilled = Some(writer);
        }
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<u64> {
        match self.spilled {
            // Nothing names the file yet: that its answer was lost is a plain failure of the operation.
            Some(spilled) => spilled.finish().await.map_err(|error| match error {
                Error::OutcomeUnknown { message } => {
                    Error::Unavailable { reason: format!("the answer of writing {} was lost: {message}", self.path) }
                }
                other => other,
            }),
            None => {
                let bytes = match <[Bytes; 1]>::try_from(self.parts) {
                    Ok([only]) => only,
                    Err(parts) => Bytes::from(parts.concat()),
                };
                self.staged.borrow_mut().push((self.path, bytes));
                Ok(self.size_bytes)
            }
        }
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        match self.spilled {
            Some(spilled) => spilled.abort().await,
            None => Ok(()),
        }
    }
}
