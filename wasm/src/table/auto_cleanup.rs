//! Auto cleanup: what the config of a table asks for after each commit.
//!
//! | key | meaning |
//! |---|---|
//! | `lance.auto_cleanup.interval` | clean up after every version that this number divides; 0 = after every one; absent = never |
//! | `lance.auto_cleanup.older_than` | versions older than this may go: `14d`, `2h 30m` |
//!
//! It runs on the version before the commit, which therefore stays. A table that asks for less than ten minutes, for no age at all or for a
//! number of versions (`retain_versions`) is left alone: what it asks for may hurt writers that take no leases. Whatever happens to the
//! cleanup, the commit stands.

use std::rc::Rc;

use crate::collections::SortedMap;
use crate::error::Result;
use crate::table::cleanup::{self, CleanupOptions};
use crate::table::database::Engine;
use crate::table::snapshot::Snapshot;

const INTERVAL: &str = "lance.auto_cleanup.interval";
const OLDER_THAN: &str = "lance.auto_cleanup.older_than";
const RETAIN_VERSIONS: &str = "lance.auto_cleanup.retain_versions";
const SAFE_AGE_MS: u64 = 10 * 60 * 1_000;

/// A config that can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AutoCleanup {
    interval: u64,
    pub(crate) older_than_ms: u64,
}

impl AutoCleanup {
    /// `None` where the config asks for nothing, for what can't be read or for what isn't safe.
    pub(crate) fn of(config: &SortedMap<String, String>) -> Option<AutoCleanup> {
        let interval = config.get(INTERVAL)?.trim().parse().ok()?;
        let older_than_ms = duration_ms(config.get(OLDER_THAN)?)?;
        let is_safe = older_than_ms >= SAFE_AGE_MS && !config.contains_key(RETAIN_VERSIONS);
        is_safe.then_some(AutoCleanup { interval, older_than_ms })
    }

    fn is_due(self, version: u64) -> bool {
        self.interval == 0 || version.is_multiple_of(self.interval)
    }
}

/// To be called when a commit is done and nothing of it can fail any more.
pub(crate) async fn after_commit(engine: &Rc<Engine>, before: &Snapshot, committed: &Snapshot) {
    let Some(config) = AutoCleanup::of(&committed.manifest.config) else { return };
    if config.is_due(committed.version()) {
        // Best effort: what is not removed now goes next time.
        let _ = clean(engine, before, config).await;
    }
}

async fn clean(engine: &Rc<Engine>, before: &Snapshot, config: AutoCleanup) -> Result<()> {
    let older_than_ms = Some(i64::try_from(config.older_than_ms).unwrap_or(i64::MAX));
    let options = CleanupOptions { older_than_ms, ..CleanupOptions::default() };
    let checked = cleanup::check(engine, before, &options).await?;
    cleanup::run(engine, before, &checked).await?;
    Ok(())
}

/// Reads spans of time such as `2h 30m`; `None` for what is none.
fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total_ns = 0u128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?.trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total_ns = total_ns.checked_add(u128::from(number).checked_mul(unit_ns(rest.get(..letters)?)?)?)?;
        rest = rest.get(letters..)?.trim_start();
    }
    u64::try_from(total_ns / 1_000_000).ok()
}

fn unit_ns(unit: &str) -> Option<u128> {
    const SECOND: u128 = 1_000_000_000;
    const DAY: u128 = 24 * 60 * 60 * SECOND;
    Some(match unit {
        "ns" | "nsec" | "nanos" => 1,
        "us" | "usec" | "micros" => 1_000,
        "ms" | "msec" | "millis" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 60 * 60 * SECOND,
        "d" | "day" | "days" => DAY,
        "w" | "wk" | "wks" | "week" | "weeks" => 7 * DAY,
        // A twelfth of a year of 365.25 days.
        "M" | "month" | "months" => 2_630_016 * SECOND,
        "y" | "yr" | "yrs" | "year" | "years" => 31_557_600 * SECOND,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read() {
        let minute = 60_000;
        assert_eq!(duration_ms("14d"), Some(14 * 24 * 60 * minute));
        assert_eq!(duration_ms("2h 30m"), Some(150 * minute));
        assert_eq!(duration_ms(" 1week 2days "), Some(9 * 24 * 60 * minute));
        assert_eq!(duration_ms("1h30min5s10ms"), Some(90 * minute + 5_010));
        assert_eq!(duration_ms("0s"), Some(0));
        for none in ["", "14", "d", "1.5h", "-1d", "1 fortnight", "99999999999999999999d", "18446744073709551615y"] {
            assert_eq!(duration_ms(none), None, "{none}");
        }
    }

    #[test]
    fn a_config_is_followed_where_it_is_whole_and_safe() {
        let config = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, value)| (format!("lance.auto_cleanup.{key}"), (*value).to_owned()));
            AutoCleanup::of(&pairs.collect())
        };
        assert_eq!(config(&[]), None);
        assert_eq!(config(&[("older_than", "1d")]), None);
        assert_eq!(config(&[("interval", "3")]), None);
        assert_eq!(config(&[("interval", "x"), ("older_than", "1d")]), None);
        assert_eq!(config(&[("interval", "3"), ("older_than", "9m 59s")]), None);
        assert_eq!(config(&[("interval", "3"), ("older_than", "1d"), ("retain_versions", "5")]), None);
        let found = config(&[("interval", "3"), ("older_than", "10m")]).unwrap();
        assert_eq!(found, AutoCleanup { interval: 3, older_than_ms: 600_000 });
        assert_eq!([4, 5, 6].map(|version| found.is_due(version)), [false, false, true]);
        let always = config(&[("interval", "0"), ("older_than", "10m")]).unwrap();
        assert_eq!([4, 5, 6].map(|version| always.is_due(version)), [true; 3]);
    }
}
