//! Frames: the messages of an Arrow IPC stream or file, each with its body.
//!
//! ```text
//! stream: message ... | end mark or nothing
//! file:   "ARROW1", padded | message ... | end mark | footer | i32 length of the footer | "ARROW1"
//! ```
//!
//! The footer of a file holds the schema, which need not stand in front of the messages; where it says that the batches lie is not
//! looked at: they come one after the other, dictionaries before what uses them.

use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Message, MessageHeader};
use arrow_schema::SchemaRef;

use super::invalid;
use crate::error::Result;

/// Opens every message since Arrow 0.15.
pub(super) const CONTINUATION: u32 = u32::MAX;
const FILE_MAGIC: &[u8; 6] = b"ARROW1";

/// The messages between the schema and the end.
pub(super) struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the messages end: the end mark may be missing.
    end: usize,
    is_file: bool,
}

pub(super) struct Frame<'a> {
    pub message: Message<'a>,
    pub body: usize,
    pub end: usize,
}

/// The schema, and the messages after it.
pub(super) fn open(bytes: &[u8]) -> Result<(SchemaRef, Frames<'_>)> {
    if bytes.starts_with(FILE_MAGIC) { open_file(bytes) } else { open_stream(bytes) }
}

fn open_stream(bytes: &[u8]) -> Result<(SchemaRef, Frames<'_>)> {
    let mut frames = Frames { bytes, at: 0, end: bytes.len(), is_file: false };
    let first = frames.next()?.ok_or_else(|| invalid("it is empty"))?;
    let schema = first.message.header_as_schema().ok_or_else(|| invalid("it does not begin with a schema"))?;
    Ok((Arc::new(try_fb_to_schema(schema).map_err(invalid)?), frames))
}

fn open_file(bytes: &[u8]) -> Result<(SchemaRef, Frames<'_>)> {
    let cut = || invalid("the footer is not inside the file");
    let rest = bytes.strip_suffix(FILE_MAGIC).ok_or_else(|| invalid("a file is cut off"))?;
    let (rest, length) = rest.split_last_chunk::<4>().ok_or_else(cut)?;
    let end = usize::try_from(i32::from_le_bytes(*length)).ok().and_then(|length| rest.len().checked_sub(length));
    let end = end.filter(|end| *end >= FILE_MAGIC.len()).ok_or_else(cut)?;
    let footer = arrow_ipc::root_as_footer(rest.get(end..).ok_or_else(cut)?).map_err(invalid)?;
    let schema = footer.schema().ok_or_else(|| invalid("a footer without a schema"))?;
    let schema = Arc::new(try_fb_to_schema(schema).map_err(invalid)?);
    // Padded to 8 bytes, or to more, with zeros.
    let padding = rest.get(FILE_MAGIC.len()..end).ok_or_else(cut)?;
    let at = padding.iter().position(|byte| *byte != 0).map_or(end, |zeros| FILE_MAGIC.len() + zeros);
    let mut frames = Frames { bytes, at, end, is_file: true };
    let after_magic = frames.at;
    if frames.next()?.is_none_or(|frame| frame.message.header_type() != MessageHeader::Schema) {
        frames.at = after_magic;
    }
    Ok((schema, frames))
}

impl<'a> Frames<'a> {
    /// The next message; `None` at the end, which is a length of 0 or the end of the bytes.
    pub(super) fn next(&mut self) -> Result<Option<Frame<'a>>> {
        let cut = || invalid("a message is cut off");
        let bytes = self.bytes.get(..self.end).ok_or_else(cut)?;
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
        if self.at == bytes.len() {
            return Ok(None);
        }
        let first = word(self.at).ok_or_else(cut)?;
        let (length, start) = if first == CONTINUATION {
            (word(self.at + 4).ok_or_else(cut)?, self.at + 8)
        } else {
            (first, self.at + 4)
        };
        if length == 0 {
            // Between the end mark and the footer of a file there may be padding.
            let is_end = self.is_file || start == bytes.len();
            return if is_end { Ok(None) } else { Err(invalid("bytes after the end of the stream")) };
        }
        let body = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).ok_or_else(cut)?;
        let message = arrow_ipc::root_as_message(bytes.get(start..body).ok_or_else(cut)?).map_err(invalid)?;
        let end = usize::try_from(message.bodyLength()).ok().and_then(|length| body.checked_add(length));
        let end = end.filter(|end| *end <= bytes.len()).ok_or_else(cut)?;
        self.at = end;
        Ok(Some(Frame { message, body, end }))
    }
}
