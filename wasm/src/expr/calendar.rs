//! Text of dates and timestamps to numbers, in the proleptic Gregorian calendar.

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i128 = 86_400;

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
