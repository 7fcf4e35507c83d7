//! Paths of objects inside a directory: the only place that joins and checks segments.

use std::fmt;

use crate::error::{Error, Result};

/// A `/`-separated path without empty, `.` or `..` segments. The empty path is the directory itself. Ordered by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(String);

impl Path {
    /// Checks a path that comes from outside.
    ///
    /// # Errors
    /// `InvalidInput` for an empty, `.` or `..` segment, a backslash or a control character.
    pub fn parse(text: &str) -> Result<Path> {
        let is_bad = |segment: &str| {
            segment.is_empty()
                || segment == "."
                || segment == ".."
                || segment.chars().any(|c| c == '\\' || c.is_control())
        };
        if !text.is_empty() && text.split('/').any(is_bad) {
            return Err(Error::invalid_input(format!("path {text:?} is not a plain relative path")));
        }
        Ok(Path(text.to_owned()))
    }

    /// A path of segments that this crate made; `segment` may hold several, joined by `/`.
    #[must_use]
    pub fn join(&self, segment: &str) -> Path {
        if self.0.is_empty() { Path(segment.to_owned()) } else { Path(format!("{}/{segment}", self.0)) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Everything before the last segment.
    #[must_use]
    pub fn parent(&self) -> Path {
        Path(self.0.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default())
    }

    /// The folder directly below `prefix` that holds this path; `None` for an object that lies in `prefix` itself.
    pub fn folder_below(&self, prefix: &Path) -> Option<Path> {
        let start = if prefix.0.is_empty() { 0 } else { prefix.0.len() + 1 };
        let end = start + self.0.get(start..)?.find('/')?;
        self.0.get(..end).map(|folder| Path(folder.to_owned()))
    }

    /// Whether this path lies below `folder`, at any depth.
    pub fn is_below(&self, folder: &Path) -> bool {
        folder.0.is_empty() || self.0.strip_prefix(&folder.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_leave_the_directory_are_refused() {
        for bad in ["..", "a/../b", "/a", "a/", "a//b", ".", "a\\b", "a\nb"] {
            assert!(Path::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Path::parse("_versions/1.manifest").unwrap().file_name(), "1.manifest");
    }

    #[test]
    fn a_sibling_with_the_same_start_is_not_below() {
        let folder = Path::parse("data").unwrap();
        assert!(folder.join("x").is_below(&folder));
        assert!(!Path::parse("data2/x").unwrap().is_below(&folder));
        assert!(!folder.is_below(&folder));
    }
}
