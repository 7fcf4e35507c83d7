//! References: names for versions, as JSON files below `_refs/`.
//!
//! ```text
//! _refs/tags/<name>.json        {"branch":null,"version":3,"createdAt":"...Z","updatedAt":"...Z","manifestSize":604,"metadata":{}}
//! _refs/branches/<name>.json    {"parentBranch":null,"parentVersion":3,...}; a `/` of the name is `%2F`
//! tree/<name>/                  a branch's own folders
//! ```
//!
//! Readers need `version` and `manifestSize` of a tag; fields that are not known are left alone.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::format::table::json::{self, Value};

const SUFFIX: &str = ".json";
/// File systems end at 255 bytes.
const MAX_NAME_BYTES: usize = 250;

/// A named version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tag {
    /// The branch of the version; `None` = the main one.
    pub branch: Option<String>,
    pub version: u64,
    /// RFC 3339.
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    pub manifest_size: u64,
    /// A JSON object, byte for byte.
    pub metadata: Option<String>,
}

/// Where a branch leaves its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// `None` = the main one.
    pub parent: Option<String>,
    pub parent_version: u64,
}

impl Tag {
    /// # Errors
    /// `Corrupt` for what is no JSON object with a version.
    pub fn decode(bytes: &[u8]) -> Result<Tag> {
        let mut tag = Tag::default();
        let mut has_version = false;
        for (name, value) in json::object(bytes)? {
            match (name.as_str(), value) {
                ("version", value) => (tag.version, has_version) = (whole(&name, &value)?, true),
                ("manifestSize", value) => tag.manifest_size = whole(&name, &value)?,
                ("branch", Value::Text(branch)) => tag.branch = Some(branch),
                ("createdAt", Value::Text(time)) => tag.created_at = Some(time),
                ("updatedAt", Value::Text(time)) => tag.updated_at = Some(time),
                ("branch" | "createdAt" | "updatedAt", Value::Null) => {}
                ("branch" | "createdAt" | "updatedAt", _) => return Err(Error::corrupt(format!("{name} is no text"))),
                ("metadata", Value::Object(raw)) => tag.metadata = Some(raw.to_owned()),
                _ => {}
            }
        }
        if has_version { Ok(tag) } else { Err(Error::corrupt("a tag without a version")) }
    }

    pub fn encode(&self) -> Vec<u8> {
        let text = |value: &Option<String>| value.as_deref().map_or_else(|| "null".to_owned(), json::quoted);
        let fields = [
            ("branch", text(&self.branch)),
            ("version", self.version.to_string()),
            ("createdAt", text(&self.created_at)),
            ("updatedAt", text(&self.updated_at)),
            ("manifestSize", self.manifest_size.to_string()),
            ("metadata", self.metadata.clone().unwrap_or_else(|| "{}".to_owned())),
        ];
        let mut json = String::from("{");
        for (at, (name, value)) in fields.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(json, "{comma}\n  \"{name}\": {value}");
        }
        json.push_str("\n}");
        json.into_bytes()
    }
}

impl Branch {
    /// # Errors
    /// `Corrupt` for what is no JSON object with a parent's version.
    pub fn decode(bytes: &[u8]) -> Result<Branch> {
        let mut branch = Branch { parent: None, parent_version: 0 };
        let mut has_version = false;
        for (name, value) in json::object(bytes)? {
            match (name.as_str(), value) {
                ("parentVersion", value) => (branch.parent_version, has_version) = (whole(&name, &value)?, true),
                ("parentBranch", Value::Text(parent)) => branch.parent = Some(parent),
                ("parentBranch", Value::Null) => {}
                ("parentBranch", _) => return Err(Error::corrupt("parentBranch is no text")),
                _ => {}
            }
        }
        if has_version { Ok(branch) } else { Err(Error::corrupt("a branch without its parent's version")) }
    }
}

/// A time as references hold it: RFC 3339, with nanoseconds.
pub fn timestamp(ns: u64) -> String {
    let (seconds, nanos) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March of the year 0, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

fn whole(name: &str, value: &Value<'_>) -> Result<u64> {
    match value {
        Value::Number(text) => text.parse().map_err(|_| Error::corrupt(format!("{name} is {text}, no whole number"))),
        _ => Err(Error::corrupt(format!("{name} is no number"))),
    }
}

pub fn tags_folder() -> &'static str {
    "_refs/tags"
}

pub fn branches_folder() -> &'static str {
    "_refs/branches"
}

pub fn tag_path(name: &str) -> String {
    format!("{}/{name}{SUFFIX}", tags_folder())
}

/// The reference that a file of one of the folders holds; `None` for other files.
pub fn parse_file_name(file: &str) -> Option<String> {
    let name = file.strip_suffix(SUFFIX).filter(|name| !name.is_empty())?;
    Some(name.replace("%2F", "/").replace("%2f", "/"))
}

/// The folder of the versions of a branch.
pub fn branch_versions_folder(branch: &str) -> String {
    format!("tree/{branch}/_versions")
}

/// Checks the name of a tag with the words of LanceDB, which takes letters of other scripts as well and can't read its tags any more.
///
/// # Errors
/// `InvalidInput`.
pub fn check_tag_name(name: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "Ref cannot be empty".to_owned()
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')) {
        "Ref characters must be either alphanumeric, '.', '-' or '_'".to_owned()
    } else if name.starts_with('.') {
        "Ref cannot begin with a dot".to_owned()
    } else if name.ends_with('.') {
        "Ref cannot end with a dot".to_owned()
    } else if name.contains("..") {
        "Ref cannot have two consecutive dots".to_owned()
    } else if name.ends_with(".lock") {
        "Ref cannot end with .lock".to_owned()
    } else if name.len() > MAX_NAME_BYTES {
        format!("Ref has at most {MAX_NAME_BYTES} characters, this one has {}", name.len())
    } else {
        return Ok(());
    };
    Err(Error::invalid_input(format!("Ref is invalid: {fault}, found \"{name}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    const FOREIGN: &str = r#"{
  "branch": null,
  "version": 2,
  "createdAt": "2026-11-30T20:24:11.072579222Z",
  "updatedAt": "2026-11-30T20:24:11.087665525Z",
  "manifestSize": 424,
  "metadata": {}
}"#;

    #[test]
    fn a_tag_of_lancedb_is_written_again_byte_for_byte() {
        let tag = Tag::decode(FOREIGN.as_bytes()).unwrap();
        assert_eq!((tag.version, tag.manifest_size, tag.branch.as_deref()), (2, 424, None));
        assert_eq!(tag.created_at.as_deref(), Some("2026-11-30T20:24:11.072579222Z"));
        assert_eq!(String::from_utf8(tag.encode()).unwrap(), FOREIGN);
    }

    #[test]
    fn a_tag_needs_its_version_and_nothing_else() {
        let minimal = Tag::decode(br#"{"version":18446744073709551615}"#).unwrap();
        assert_eq!(minimal, Tag { version: u64::MAX, ..Tag::default() });
        let rich = br#" {"x":[1,{"y":"}"}],"metadata":{"a": "b\"}"},"branch":"dev\/a\u00e9\ud83d\ude00","version":1} "#;
        let tag = Tag::decode(rich).unwrap();
        assert_eq!(tag.branch.as_deref(), Some("dev/a\u{e9}\u{1f600}"));
        assert_eq!(tag.metadata.as_deref(), Some(r#"{"a": "b\"}"}"#));
        assert_eq!(Tag::decode(&tag.encode()).unwrap(), tag);
    }

    #[test]
    fn what_is_no_tag_is_corrupt() {
        let bad: [&[u8]; 16] = [
            b"",
            b"{}",
            b"null",
            b"[1]",
            b"{\"version\":1",
            b"{\"version\":1}}",
            b"{\"version\":\"1\"}",
            b"{\"version\":-1}",
            b"{\"version\":1.5}",
            b"{\"version\":18446744073709551616}",
            b"{\"version\":01}",
            b"{\"version\":1,}",
            b"{\"version\":1,\"branch\":5}",
            b"{\"version\":1,\"x\":\"\\ud800\"}",
            b"{\"version\":1,\"x\":\"\xff\"}",
            b"{version:1}",
        ];
        for bytes in bad {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(Tag::decode(bytes).map_err(|error| error.code()), Err(ErrorCode::Corrupt), "{text}");
        }
        for end in 0..FOREIGN.len() {
            assert!(Tag::decode(&FOREIGN.as_bytes()[..end]).is_err(), "{end}");
        }
        let deep = format!("{{\"version\":1,\"x\":{}", "[".repeat(100_000));
        assert!(Tag::decode(deep.as_bytes()).is_err());
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999999Z"),
            (1_735_689_599_000_000_001, "2024-12-31T23:59:59.000000001Z"),
            (1_796_070_251_072_579_222, "2026-11-30T20:24:11.072579222Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
            (u64::MAX, "2554-07-21T23:34:33.709551615Z"),
        ] {
            assert_eq!(timestamp(ns), text);
        }
    }

    #[test]
    fn a_branch_tells_where_it_left_its_parent() {
        let text =
            br#"{"parentBranch":null,"identifier":{"version_mapping":[[3,"ab"]]},"parentVersion":3,"createAt":1}"#;
        assert_eq!(Branch::decode(text).unwrap(), Branch { parent: None, parent_version: 3 });
        assert_eq!(
            Branch::decode(br#"{"parentBranch":"a/b","parentVersion":4}"#).unwrap(),
            Branch { parent: Some("a/b".into()), parent_version: 4 }
        );
        assert!(Branch::decode(br#"{"parentBranch":null}"#).is_err());
        assert_eq!(parse_file_name("a%2Fb.json").as_deref(), Some("a/b"));
        assert_eq!((parse_file_name("a.txt"), parse_file_name(".json")), (None, None));
    }

    #[test]
    fn names_of_tags_are_checked_with_the_words_of_lancedb() {
        let fault = |name: &str| check_tag_name(name).map_err(|error| error.to_string()).err().unwrap_or_default();
        for name in ["a", "A.b-c_9", "-", "_", "v1.0", &"a".repeat(250)] {
            assert_eq!(fault(name), "", "{name}");
        }
        let says = |name: &str, words: &str| {
            assert_eq!(fault(name), format!("invalid input, Ref is invalid: {words}, found \"{name}\""));
        };
        says("", "Ref cannot be empty");
        for name in ["a/b", "a b", "\u{e4}", "a\\b", "a%"] {
            says(name, "Ref characters must be either alphanumeric, '.', '-' or '_'");
        }
        says(".a", "Ref cannot begin with a dot");
        says("a.", "Ref cannot end with a dot");
        says("a..b", "Ref cannot have two consecutive dots");
        says("a.lock", "Ref cannot end with .lock");
        assert!(fault(&"a".repeat(251)).contains("at most 250"));
    }
}
