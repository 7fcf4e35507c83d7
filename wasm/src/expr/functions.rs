//! Functions of one row's values: their names, what they take and give, and how they are computed.

use std::borrow::Cow;

use super::calendar::PARTS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Ascii,
    Ceil,
    Concat,
    /// `||`: null where an operand is.
    Join,
    Contains,
    EndsWith,
    Exp,
    Floor,
    Greatest,
    InitCap,
    IsNan,
    Least,
    Left,
    Length,
    Levenshtein,
    Ln,
    Log10,
    Log2,
    Lower,
    LeftPad,
    LeftTrim,
    OctetLength,
    Position,
    Power,
    Repeat,
    Replace,
    Reverse,
    Right,
    Round,
    RightPad,
    RightTrim,
    SplitPart,
    Sqrt,
    StartsWith,
    Substring,
    Trim,
    Upper,
}

/// A function's name, what it is, and its signature: one letter per argument (`t` text, `i` a whole number, `n` a number, `f` a number as
/// a double), `?` before those that may lack, `*` after one that repeats; then `>` and what it gives (`t`, `i`, `b`, `f` a double or, for
/// float32, a float, `=` the type of its arguments).
pub(super) const FUNCTIONS: [(&str, Function, &str); 44] = [
    ("abs", Function::Abs, "n>="),
    ("ascii", Function::Ascii, "t>i"),
    ("btrim", Function::Trim, "t?t>t"),
    ("ceil", Function::Ceil, "f>f"),
    ("char_length", Function::Length, "t>i"),
    ("character_length", Function::Length, "t>i"),
    ("concat", Function::Concat, "s*>t"),
    ("||", Function::Join, "s*>t"),
    ("contains", Function::Contains, "tt>b"),
    ("ends_with", Function::EndsWith, "tt>b"),
    ("exp", Function::Exp, "f>f"),
    ("floor", Function::Floor, "f>f"),
    ("greatest", Function::Greatest, "n*>="),
    ("initcap", Function::InitCap, "t>t"),
    ("isnan", Function::IsNan, "f>b"),
    ("least", Function::Least, "n*>="),
    ("left", Function::Left, "ti>t"),
    ("length", Function::Length, "t>i"),
    ("levenshtein", Function::Levenshtein, "tt>i"),
    ("ln", Function::Ln, "f>f"),
    ("log10", Function::Log10, "f>f"),
    ("log2", Function::Log2, "f>f"),
    ("lower", Function::Lower, "t>t"),
    ("lpad", Function::LeftPad, "ti?t>t"),
    ("ltrim", Function::LeftTrim, "t?t>t"),
    ("octet_length", Function::OctetLength, "t>i"),
    ("position", Function::Position, "tt>i"),
    ("power", Function::Power, "ff>f"),
    ("pow", Function::Power, "ff>f"),
    ("repeat", Function::Repeat, "ti>t"),
    ("replace", Function::Replace, "ttt>t"),
    ("reverse", Function::Reverse, "t>t"),
    ("right", Function::Right, "ti>t"),
    ("round", Function::Round, "f?i>f"),
    ("rpad", Function::RightPad, "ti?t>t"),
    ("rtrim", Function::RightTrim, "t?t>t"),
    ("split_part", Function::SplitPart, "tti>t"),
    ("sqrt", Function::Sqrt, "f>f"),
    ("starts_with", Function::StartsWith, "tt>b"),
    ("strpos", Function::Position, "tt>i"),
    ("substr", Function::Substring, "ti?i>t"),
    ("substring", Function::Substring, "ti?i>t"),
    ("trim", Function::Trim, "t?t>t"),
    ("upper", Function::Upper, "t>t"),
];

/// Functions that are bound in their own way.
pub(super) const SPECIAL: [&str; 26] = [
    "array_contains",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_length",
    "array_position",
    "arrow_cast",
    "cardinality",
    "coalesce",
    "current_date",
    "current_timestamp",
    "date_part",
    "date_trunc",
    "empty",
    "extract",
    "get_field",
    "list_contains",
    "make_array",
    "now",
    "nullif",
    "pi",
    "to_date",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_seconds",
];

/// Functions of LanceDB's dialect that a later version evaluates; any other name is unknown.
pub(super) const LATER: [&str; 7] =
    ["current_time", "md5", "regexp_like", "regexp_match", "sha256", "to_timestamp_nanos", "translate"];

/// Every name, for "did you mean".
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _, _)| *name).chain(SPECIAL).chain(LATER)
}

/// The names of the parts of a date, for messages.
pub(super) fn part_names() -> String {
    PARTS.map(|(name, _)| name).join(", ")
}

/// A value of one row, as a function takes and gives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Cow<'a, str>),
}

/// Text longer than this is no value that anybody meant.
const MAX_TEXT: usize = 16 << 20;

/// The function's value of one row's arguments, which the signature has checked.
///
/// # Errors
/// What the values made impossible.
pub(super) fn call<'a>(function: Function, args: &[Scalar<'a>]) -> Result<Scalar<'a>, &'static str> {
    use Scalar::{Bool, Float, Int, Null, Text};
    match function {
        Function::Concat => {
            let texts = args.iter().filter_map(|arg| if let Text(text) = arg { Some(text.as_ref()) } else { None });
            return Ok(Text(Cow::Owned(texts.collect())));
        }
        Function::Greatest | Function::Least => {
            let best = args.iter().filter(|arg| **arg != Null).reduce(|best, arg| {
                let is_greater = match (best, arg) {
                    (Int(best), Int(arg)) => arg > best,
                    (Float(best), Float(arg)) => (arg + 0.0).total_cmp(&(best + 0.0)).is_gt(),
                    _ => false,
                };
                if is_greater == (function == Function::Greatest) { arg } else { best }
            });
            return Ok(best.cloned().unwrap_or(Null));
        }
        _ if args.contains(&Null) => return Ok(Null),
        _ => {}
    }
    let text = |at: usize| match args.get(at) {
        Some(Text(text)) => text.as_ref(),
        _ => "",
    };
    let int = |at: usize| match args.get(at) {
        Some(Int(value)) => i64::try_from(*value).unwrap_or(if *value < 0 { i64::MIN } else { i64::MAX }),
        _ => 0,
    };
    let float = |at: usize| match args.get(at) {
        Some(Float(value)) => *value,
        _ => 0.0,
    };
    let number = |value: usize| Ok(Int(value as i128));
    let owned = |text: String| Ok(Text(Cow::Owned(text)));
    let trimmed = |is_start: bool, is_end: bool| {
        let set = if args.len() > 1 { text(1) } else { " " };
        let is_in = |c: char| set.contains(c);
        let mut rest = text(0);
        if is_start {
            rest = rest.trim_start_matches(is_in);
        }
        if is_end {
            rest = rest.trim_end_matches(is_in);
        }
        owned(rest.to_owned())
    };
    match function {
        Function::Abs => match args.first() {
            Some(Int(value)) => value.checked_abs().map(Int).ok_or("integer overflow"),
            _ => Ok(Float(float(0).abs())),
        },
        Function::Ceil => Ok(Float(float(0).ceil())),
        Function::Floor => Ok(Float(float(0).floor())),
        Function::Round => Ok(Float(round(float(0), int(1)))),
        // As in arithmetic: what has no result is less than every number.
        Function::Sqrt => Ok(Float(if float(0) < 0.0 { -f64::NAN } else { float(0).sqrt() })),
        Function::Exp => Ok(Float(float(0).exp())),
        Function::Ln => Ok(Float(float(0).ln())),
        Function::Log10 => Ok(Float(float(0).log10())),
        Function::Log2 => Ok(Float(float(0).log2())),
        Function::Power => Ok(Float(float(0).powf(float(1)))),
        Function::IsNan => Ok(Bool(float(0).is_nan())),
        Function::Join => {
            let total: usize = (0..args.len()).map(|at| text(at).len()).sum();
            if total > MAX_TEXT {
                return Err("this text is too long");
            }
            owned((0..args.len()).map(text).collect())
        }
        Function::Lower => owned(text(0).to_lowercase()),
        Function::Upper => owned(text(0).to_uppercase()),
        Function::InitCap => owned(capitalized(text(0))),
        Function::Length => number(text(0).chars().count()),
        Function::OctetLength => number(text(0).len()),
        Function::Ascii => Ok(Int(text(0).chars().next().map_or(0, |c| i128::from(u32::from(c))))),
        Function::StartsWith => Ok(Bool(text(0).starts_with(text(1)))),
        Function::EndsWith => Ok(Bool(text(0).ends_with(text(1)))),
        Function::Contains => Ok(Bool(text(0).contains(text(1)))),
        Function::Position => {
            let before = text(0).find(text(1)).and_then(|at| text(0).get(..at));
            number(before.map_or(0, |before| before.chars().count() + 1))
        }
        Function::Trim => trimmed(true, true),
        Function::LeftTrim => trimmed(true, false),
        Function::RightTrim => trimmed(false, true),
        Function::Replace if text(1).is_empty() => owned(text(0).to_owned()),
        Function::Replace => {
            let count = text(0).matches(text(1)).count();
            if count.saturating_mul(text(2).len()) > MAX_TEXT {
                return Err("this text is too long");
            }
            owned(text(0).replace(text(1), text(2)))
        }
        Function::Reverse => owned(text(0).chars().rev().collect()),
        Function::Left | Function::Right => {
            let length = text(0).chars().count() as i64;
            // A negative count leaves out that many at the other end.
            let count = if int(1) < 0 { length.saturating_add(int(1)).max(0) } else { int(1).min(length) };
            let skip = if function == Function::Left { 0 } else { length - count };
            owned(text(0).chars().skip(skip as usize).take(count as usize).collect())
        }
        Function::Substring => {
            let (start, length) = (int(1), if args.len() > 2 { int(2) } else { i64::MAX });
            if length < 0 {
                return Err("the length of a substring is negative");
            }
            let end = start.saturating_add(length);
            let (skip, end) = ((start - 1).max(0), end.saturating_sub(1).max(0));
            let count = usize::try_from(end.saturating_sub(skip)).unwrap_or(if end > skip { usize::MAX } else { 0 });
            owned(text(0).chars().skip(usize::try_from(skip).unwrap_or(usize::MAX)).take(count).collect())
        }
        Function::Repeat => {
            let count = usize::try_from(int(1).max(0)).unwrap_or(usize::MAX);
            if count.saturating_mul(text(0).len()) > MAX_TEXT {
                return Err("this text is too long");
            }
            owned(text(0).repeat(count))
        }
        Function::LeftPad | Function::RightPad => {
            let length = usize::try_from(int(1).max(0)).unwrap_or(usize::MAX);
            let fill = if args.len() > 2 { text(2) } else { " " };
            let missing = length.saturating_sub(text(0).chars().count());
            if missing > MAX_TEXT / 4 {
                return Err("this text is too long");
            }
            let padding = fill.chars().cycle().take(if fill.is_empty() { 0 } else { missing });
            owned(if function == Function::LeftPad {
                padding.chain(text(0).chars().take(length)).collect()
            } else {
                text(0).chars().take(length).chain(padding).collect()
            })
        }
        Function::SplitPart => {
            let parts: Vec<&str> = if text(1).is_empty() { vec![text(0)] } else { text(0).split(text(1)).collect() };
            let at = match int(2) {
                0 => return Err("parts are counted from 1"),
                at if at < 0 => (parts.len() as i64).saturating_add(at),
                at => at - 1,
            };
            owned(usize::try_from(at).ok().and_then(|at| parts.get(at)).copied().unwrap_or_default().to_owned())
        }
        Function::Levenshtein => {
            let (left, right): (Vec<char>, Vec<char>) = (text(0).chars().collect(), text(1).chars().collect());
            if left.len().saturating_mul(right.len()) > MAX_TEXT {
                return Err("these texts are too long");
            }
            number(crate::format::table::closest::edit_distance(&left, &right))
        }
        Function::Concat | Function::Greatest | Function::Least => Ok(Null),
    }
}

/// Half away from zero.
fn round(value: f64, digits: i64) -> f64 {
    if digits == 0 {
        return value.round();
    }
    let factor = 10_f64.powi(i32::try_from(digits.clamp(-400, 400)).unwrap_or_default());
    let rounded = (value * factor).round() / factor;
    // A double that has no digit there is its own.
    if rounded.is_finite() { rounded } else { value }
}

fn capitalized(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut is_inside = false;
    for c in text.chars() {
        if is_inside {
            result.extend(c.to_lowercase())
        } else {
            result.extend(c.to_uppercase())
        }
        is_inside = c.is_alphanumeric();
    }
    result
}
