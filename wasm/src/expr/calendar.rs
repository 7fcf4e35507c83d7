//! Text of dates and timestamps to numbers and back, in the proleptic Gregorian calendar.

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i128 = 86_400;
pub(super) const NANOS_PER_DAY: i128 = SECONDS_PER_DAY * NANOS_PER_SECOND;

/// Days since 1970-01-01 of `YYYY-MM-DD`.
pub(super) fn parse_date(text: &str) -> Option<i32> {
    let (date, rest) = date(text.trim().as_bytes())?;
    rest.is_empty().then_some(date)
}

/// Nanoseconds since the epoch of `YYYY-MM-DD`, optionally with `[ T]hh:mm[:ss[.fraction]]` and `Z` or `+hh[:mm]`.
pub(super) fn parse_timestamp(text: &str) -> Option<i128> {
    let (days, rest) = date(text.trim().as_bytes())?;
    let midnight = i128::from(days) * SECONDS_PER_DAY * NANOS_PER_SECOND;
    let rest = match rest {
        [] => return Some(midnight),
        [b' ' | b'T' | b't', rest @ ..] => rest,
        _ => return None,
    };
    let (hour, rest) = digits(rest, 2, 23)?;
    let (minute, rest) = digits(rest.strip_prefix(b":")?, 2, 59)?;
    let (second, rest) = match rest.strip_prefix(b":") {
        Some(rest) => digits(rest, 2, 59)?,
        None => (0, rest),
    };
    let (nanos, rest) = match rest.strip_prefix(b".") {
        Some(rest) => fraction(rest)?,
        None => (0, rest),
    };
    let offset = offset_seconds(rest)?;
    let seconds = i128::from(hour * 3600 + minute * 60 + second) - offset;
    Some(midnight + seconds * NANOS_PER_SECOND + nanos)
}

fn date(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (year, rest) = digits(bytes, 4, 9999)?;
    let (month, rest) = digits(rest.strip_prefix(b"-")?, 2, 12)?;
    let (day, rest) = digits(rest.strip_prefix(b"-")?, 2, 31)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (month >= 1 && day >= 1 && day <= length).then(|| (days_from_civil(year, month, day), rest))
}

/// Years are counted from March, so that the leap day is the last of its year.
fn days_from_civil(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of the days since the epoch.
fn civil_from_days(days: i128) -> (i128, i128, i128) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i128::from(month <= 2), month, day)
}

/// `YYYY-MM-DD` of the days since the epoch.
pub(super) fn format_date(days: i128) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `YYYY-MM-DDThh:mm:ss` of nanoseconds since the epoch, with as many groups of three digits of a second as it needs.
pub(super) fn format_timestamp(nanos: i128) -> String {
    let (day, time) = (nanos.div_euclid(NANOS_PER_DAY), nanos.rem_euclid(NANOS_PER_DAY));
    let (seconds, fraction) = (time / NANOS_PER_SECOND, time % NANOS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{}T{hour:02}:{minute:02}:{second:02}", format_date(day));
    if fraction > 0 {
        let digits = format!("{fraction:09}");
        let groups = digits.trim_end_matches('0').len().div_ceil(3);
        text.push('.');
        text.push_str(digits.get(..groups * 3).unwrap_or(&digits));
    }
    text
}

/// A part of a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    DayOfWeek,
    DayOfYear,
}

/// Names of parts, as SQL has them.
pub(super) const PARTS: [(&str, Part); 12] = [
    ("year", Part::Year),
    ("quarter", Part::Quarter),
    ("month", Part::Month),
    ("week", Part::Week),
    ("day", Part::Day),
    ("hour", Part::Hour),
    ("minute", Part::Minute),
    ("second", Part::Second),
    ("dow", Part::DayOfWeek),
    ("doy", Part::DayOfYear),
    ("dayofweek", Part::DayOfWeek),
    ("dayofyear", Part::DayOfYear),
];

impl Part {
    /// The part of the nanoseconds since the epoch. Weeks are those of ISO 8601, days of the week count from Sunday, 0.
    pub(super) fn of(self, nanos: i128) -> i128 {
        let (day, time) = (nanos.div_euclid(NANOS_PER_DAY), nanos.rem_euclid(NANOS_PER_DAY));
        let (year, month, day_of_month) = civil_from_days(day);
        let first_of = |year: i128| i128::from(days_from_civil(year as i32, 1, 1));
        match self {
            Part::Year => year,
            Part::Quarter => (month + 2) / 3,
            Part::Month => month,
            Part::Day => day_of_month,
            Part::Hour => time / (3600 * NANOS_PER_SECOND),
            Part::Minute => time / (60 * NANOS_PER_SECOND) % 60,
            Part::Second => time / NANOS_PER_SECOND % 60,
            Part::DayOfWeek => (day + 4).rem_euclid(7),
            Part::DayOfYear => day - first_of(year) + 1,
            Part::Week => {
                // The week belongs to the year of its Thursday.
                let thursday = day - (day + 3).rem_euclid(7) + 3;
                (thursday - first_of(civil_from_days(thursday).0)) / 7 + 1
            }
        }
    }

    /// The beginning of the year, the month, ... that the nanoseconds are in; `None` for parts that are no stretch of time.
    pub(super) fn truncate(self, nanos: i128) -> Option<i128> {
        let day = nanos.div_euclid(NANOS_PER_DAY);
        let (year, month, _) = civil_from_days(day);
        let month_begins = |month: i128| i128::from(days_from_civil(year as i32, month as i32, 1)) * NANOS_PER_DAY;
        let to = |unit: i128| nanos.div_euclid(unit) * unit;
        Some(match self {
            Part::Year => month_begins(1),
            Part::Quarter => month_begins((month + 2) / 3 * 3 - 2),
            Part::Month => month_begins(month),
            Part::Week => (day - (day + 3).rem_euclid(7)) * NANOS_PER_DAY,
            Part::Day => day * NANOS_PER_DAY,
            Part::Hour => to(3600 * NANOS_PER_SECOND),
            Part::Minute => to(60 * NANOS_PER_SECOND),
            Part::Second => to(NANOS_PER_SECOND),
            Part::DayOfWeek | Part::DayOfYear => return None,
        })
    }
}

fn digits(bytes: &[u8], count: usize, max: i32) -> Option<(i32, &[u8])> {
    let (head, rest) = bytes.split_at_checked(count)?;
    let value = std::str::from_utf8(head).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    (value <= max).then_some((value, rest))
}

/// Up to nine digits as nanoseconds.
fn fraction(bytes: &[u8]) -> Option<(i128, &[u8])> {
    let count = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let (head, rest) = bytes.split_at_checked(count)?;
    if count == 0 || count > 9 {
        return None;
    }
    let value = head.iter().fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
    Some((value * 10_i128.pow(9 - count as u32), rest))
}

fn offset_seconds(bytes: &[u8]) -> Option<i128> {
    let (sign, rest) = match bytes {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2, 23)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { digits(rest, 2, 59)? };
    rest.is_empty().then_some(sign * i128::from(hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_over_leap_years_and_before_the_epoch() {
        let cases = [
            ("1970-01-01", Some(0)),
            ("1969-12-31", Some(-1)),
            ("2000-02-29", Some(11_016)),
            ("2024-03-01", Some(19_783)),
            ("1900-02-29", None),
            ("2024-13-01", None),
            ("2024-1-1", None),
            ("0001-01-01", Some(-719_162)),
        ];
        for (text, days) in cases {
            assert_eq!(parse_date(text), days, "{text}");
        }
    }

    #[test]
    fn days_come_back_as_they_were_written() {
        for text in ["1970-01-01", "1969-12-31", "2000-02-29", "0001-01-01", "9999-12-31"] {
            assert_eq!(format_date(parse_date(text).unwrap().into()), text);
        }
        for text in ["1969-12-31T23:59:59.999", "2024-02-29T12:34:56", "2024-02-29T00:00:00.000000001"] {
            assert_eq!(format_timestamp(parse_timestamp(text).unwrap()), text);
        }
    }

    #[test]
    fn parts_and_beginnings_are_those_of_the_calendar() {
        let parts = |text: &str| PARTS.map(|(_, part)| part.of(parse_timestamp(text).unwrap()));
        assert_eq!(parts("2024-12-31 13:14:15.5"), [2024, 4, 12, 1, 31, 13, 14, 15, 2, 366, 2, 366]);
        assert_eq!(parts("1969-01-01"), [1969, 1, 1, 1, 1, 0, 0, 0, 3, 1, 3, 1]);
        let begin = |part: Part| part.truncate(parse_timestamp("2024-08-15 13:14:15.5").unwrap()).map(format_timestamp);
        assert_eq!(begin(Part::Quarter).as_deref(), Some("2024-07-01T00:00:00"));
        assert_eq!(begin(Part::Week).as_deref(), Some("2024-08-12T00:00:00"));
        assert_eq!(begin(Part::Minute).as_deref(), Some("2024-08-15T13:14:00"));
        assert_eq!(begin(Part::DayOfWeek), None);
    }

    #[test]
    fn timestamps_take_a_zone_and_a_fraction() {
        let cases = [
            ("1970-01-01", Some(0)),
            ("1970-01-01 00:00:01.5", Some(1_500_000_000)),
            ("1970-01-01T02:00:00+02:00", Some(0)),
            ("1970-01-01 00:00:00.000000001Z", Some(1)),
            ("1969-12-31T23:59:59-0000", Some(-1_000_000_000)),
            ("1970-01-01 24:00:00", None),
            ("1970-01-01 00:00:00.", None),
            ("1970-01-01 00:00:00 UTC", None),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_timestamp(text), nanos, "{text}");
        }
    }
}
