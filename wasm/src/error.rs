//! What may go wrong, as data: one variant per thing that a caller handles differently.
//!
//! `code()` is the stable public name, equal to the `ErrorCode` union of the TypeScript facade. Messages are for people: lower case,
//! they say which thing, what was found and what was expected, and they may change.

use std::fmt;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// An argument that no state of the table could make right.
    InvalidInput { message: String },
    /// Rows or types that do not fit the table.
    Schema { message: String },
    /// No table of this name, or it was dropped.
    TableNotFound { name: String },
    /// The name is taken.
    TableExists { name: String },
    /// A version, tag, column or file that is not there; `what` names it with its kind.
    NotFound { what: String },
    /// A tag or column that is already there; `what` names it with its kind.
    AlreadyExists { what: String },
    /// Valid, but not offered by this build.
    NotSupported { feature: String },
    /// Another commit since the version that was read excludes ours.
    Conflict { ours: String, theirs: String, version: u64 },
    /// A bounded wait for others' commits or locks ran out.
    Contention { message: String },
    /// The store is blocked or its connection was lost.
    Unavailable { reason: String },
    /// The answer of a commit was lost and whether it took effect cannot be found out any more.
    OutcomeUnknown { message: String },
    /// A deadline of the caller passed.
    Timeout { message: String },
    /// The caller's signal.
    Aborted,
    /// A handle that was closed.
    Closed { what: String },
    /// Bytes of a store that are not what the format says.
    Corrupt { path: String, offset: Option<u64>, reason: String },
    /// The storage is full; the old state is intact.
    Quota { needed_bytes: Option<u64> },
    /// The store failed in a way that has no code of its own.
    Storage { path: String, source: String },
    /// An invariant of this crate does not hold.
    Internal { reason: String },
}

/// The closed list of public error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    InvalidInput,
    Schema,
    TableNotFound,
    TableExists,
    NotFound,
    AlreadyExists,
    NotSupported,
    Conflict,
    Contention,
    Draining,
    Fenced,
    ClaimLost,
    Unavailable,
    TableDropping,
    NotLsm,
    OutcomeUnknown,
    Timeout,
    Aborted,
    Closed,
    Corrupt,
    Quota,
    Storage,
    Internal,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: [ErrorCode; 23] = [
        ErrorCode::InvalidInput,
        ErrorCode::Schema,
        ErrorCode::TableNotFound,
        ErrorCode::TableExists,
        ErrorCode::NotFound,
        ErrorCode::AlreadyExists,
        ErrorCode::NotSupported,
        ErrorCode::Conflict,
        ErrorCode::Contention,
        ErrorCode::Draining,
        ErrorCode::Fenced,
        ErrorCode::ClaimLost,
        ErrorCode::Unavailable,
        ErrorCode::TableDropping,
        ErrorCode::NotLsm,
        ErrorCode::OutcomeUnknown,
        ErrorCode::Timeout,
        ErrorCode::Aborted,
        ErrorCode::Closed,
        ErrorCode::Corrupt,
        ErrorCode::Quota,
        ErrorCode::Storage,
        ErrorCode::Internal,
    ];

    /// The public name, as the facade's `ErrorCode` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::InvalidInput => "INVALID_INPUT",
            ErrorCode::Schema => "SCHEMA",
            ErrorCode::TableNotFound => "TABLE_NOT_FOUND",
            ErrorCode::TableExists => "TABLE_EXISTS",
            ErrorCode::NotFound => "NOT_FOUND",
            ErrorCode::AlreadyExists => "ALREADY_EXISTS",
            ErrorCode::NotSupported => "NOT_SUPPORTED",
            ErrorCode::Conflict => "CONFLICT",
            ErrorCode::Contention => "CONTENTION",
            ErrorCode::Draining => "DRAINING",
            ErrorCode::Fenced => "FENCED",
            ErrorCode::ClaimLost => "CLAIM_LOST",
            ErrorCode::Unavailable => "UNAVAILABLE",
            ErrorCode::TableDropping => "TABLE_DROPPING",
            ErrorCode::NotLsm => "NOT_LSM",
            ErrorCode::OutcomeUnknown => "OUTCOME_UNKNOWN",
            ErrorCode::Timeout => "TIMEOUT",
            ErrorCode::Aborted => "ABORTED",
            ErrorCode::Closed => "CLOSED",
            ErrorCode::Corrupt => "CORRUPT",
            ErrorCode::Quota => "QUOTA",
            ErrorCode::Storage => "STORAGE",
            ErrorCode::Internal => "INTERNAL",
        }
    }
}

impl Error {
    /// The stable public code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::InvalidInput { .. } => ErrorCode::InvalidInput,
            Error::Schema { .. } => ErrorCode::Schema,
            Error::TableNotFound { .. } => ErrorCode::TableNotFound,
            Error::TableExists { .. } => ErrorCode::TableExists,
            Error::NotFound { .. } => ErrorCode::NotFound,
            Error::AlreadyExists { .. } => ErrorCode::AlreadyExists,
            Error::NotSupported { .. } => ErrorCode::NotSupported,
            Error::Conflict { .. } => ErrorCode::Conflict,
            Error::Contention { .. } => ErrorCode::Contention,
            Error::Unavailable { .. } => ErrorCode::Unavailable,
            Error::OutcomeUnknown { .. } => ErrorCode::OutcomeUnknown,
            Error::Timeout { .. } => ErrorCode::Timeout,
            Error::Aborted => ErrorCode::Aborted,
            Error::Closed { .. } => ErrorCode::Closed,
            Error::Corrupt { .. } => ErrorCode::Corrupt,
            Error::Quota { .. } => ErrorCode::Quota,
            Error::Storage { .. } => ErrorCode::Storage,
            Error::Internal { .. } => ErrorCode::Internal,
        }
    }

    /// Whether the same call may succeed later without the caller changing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self.code(), ErrorCode::Conflict | ErrorCode::Contention | ErrorCode::Unavailable | ErrorCode::Timeout)
    }

    pub fn invalid_input(message: impl Into<String>) -> Error {
        Error::InvalidInput { message: message.into() }
    }

    pub fn schema(message: impl Into<String>) -> Error {
        Error::Schema { message: message.into() }
    }

    pub fn not_supported(feature: impl Into<String>) -> Error {
        Error::NotSupported { feature: feature.into() }
    }

    pub fn internal(reason: impl Into<String>) -> Error {
        Error::Internal { reason: reason.into() }
    }

    /// Corruption found by a pure codec, which does not know the path; [`Error::at`] adds it.
    pub fn corrupt(reason: impl Into<String>) -> Error {
        Error::Corrupt { path: String::new(), offset: None, reason: reason.into() }
    }

    /// Corruption at a byte offset of the bytes that a pure codec was given.
    pub fn corrupt_at(offset: u64, reason: impl Into<String>) -> Error {
        Error::Corrupt { path: String::new(), offset: Some(offset), reason: reason.into() }
    }

    /// Says which of several expressions an input error is about; other errors pass unchanged.
    #[must_use]
    pub fn of_expression(self, which: &str) -> Error {
        match self {
            Error::InvalidInput { message } => Error::invalid_input(format!("{which}: {message}")),
            other => other,
        }
    }

    /// Names the file of a corruption that has no path yet; other errors pass unchanged.
    #[must_use]
    pub fn at(self, file: impl fmt::Display) -> Error {
        match self {
            Error::Corrupt { path, offset, reason } if path.is_empty() => {
                Error::Corrupt { path: file.to_string(), offset, reason }
            }
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // LanceDB's text for a bad name says by itself what it is.
            Error::InvalidInput { message } if message.starts_with("Invalid ") => f.write_str(message),
            Error::InvalidInput { message } => write!(f, "invalid input, {message}"),
            Error::Schema { message } => write!(f, "schema error: {message}"),
            Error::NotFound { what } if what.starts_with("tag ") || what.starts_with("version main:") => {
                write!(f, "{what} does not exist")
            }
            // The three texts below carry the substrings that LanceDB's users look for.
            Error::TableNotFound { name } => write!(f, "Table '{name}' was not found"),
            Error::TableExists { name } => write!(f, "Table '{name}' already exists"),
            Error::NotSupported { feature } => write!(f, "not supported: {feature}"),
            // LanceDB's texts are sentences of their own.
            Error::NotFound { what } if what.ends_with("not found.") || what.contains(" does not exist") => {
                f.write_str(what)
            }
            Error::NotFound { what } => write!(f, "{what} was not found"),
            Error::AlreadyExists { what } if what.contains(" already exists") => f.write_str(what),
            Error::AlreadyExists { what } => write!(f, "{what} already exists"),
            Error::Conflict { ours, theirs, version } => {
                write!(f, "{ours} conflicts with {theirs}, committed as version {version}")
            }
            Error::Contention { message } | Error::OutcomeUnknown { message } | Error::Timeout { message } => {
                f.write_str(message)
            }
            Error::Unavailable { reason } => write!(f, "storage is not available: {reason}"),
            Error::Aborted => f.write_str("the operation was aborted"),
            Error::Closed { what } => write!(f, "{what} is closed"),
            Error::Corrupt { path, offset, reason } => {
                let path = if path.is_empty() { "bytes" } else { path };
                match offset {
                    Some(offset) => write!(f, "corrupt data in {path} at byte {offset}: {reason}"),
                    None => write!(f, "corrupt data in {path}: {reason}"),
                }
            }
            Error::Quota { needed_bytes: Some(bytes) } => {
                write!(f, "the storage is full: {bytes} more bytes were needed; nothing was changed")
            }
            Error::Quota { needed_bytes: None } => f.write_str("the storage is full; nothing was changed"),
            Error::Storage { path, source } if path.is_empty() => write!(f, "storage failed: {source}"),
            Error::Storage { path, source } => write!(f, "storage failed at {path}: {source}"),
            Error::Internal { reason } => write!(f, "internal error: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_upper_case() {
        let mut names: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorCode::ALL.len());
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')));
    }

    #[test]
    fn bad_input_is_called_so_once() {
        assert_eq!(Error::invalid_input("row 3").to_string(), "invalid input, row 3");
        assert_eq!(Error::invalid_input("Invalid table name (\"\")").to_string(), "Invalid table name (\"\")");
    }

    #[test]
    fn a_codec_error_takes_the_path_of_its_file_once() {
        let error = Error::corrupt_at(12, "bad magic").at("_versions/1.manifest").at("elsewhere");
        assert_eq!(error.to_string(), "corrupt data in _versions/1.manifest at byte 12: bad magic");
    }
}
