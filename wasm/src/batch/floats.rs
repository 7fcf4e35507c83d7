//! Floats from text: correctly rounded, without the table of powers of five of the standard library, ten kilobytes that do not compress.
//!
//! The decimal is a fraction of two whole numbers of any length. Their quotient is taken bit by bit, two bits more than a double holds
//! and one that tells of a rest, and rounded half to even. Digits behind the first 800 only tell that there are any: no two doubles are
//! so close that they matter otherwise.

use std::cmp::Ordering;

/// Digits that can decide between two doubles, and some.
const MAX_DIGITS: usize = 800;
/// Decimal exponents outside of this are nothing or infinity, whatever the digits.
const MAX_EXPONENT: i64 = 1_200;
/// Powers of ten that are doubles.
const EXACT: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number as `f64::from_str` reads it: digits with a point or an exponent, `inf`, `infinity` or `nan` in any case, with or without a sign.
pub fn parse(text: &str) -> Option<f64> {
    let (is_negative, magnitude) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let is = |word: &[u8]| magnitude.eq_ignore_ascii_case(word);
    let value = if is(b"inf") || is(b"infinity") {
        f64::INFINITY
    } else if is(b"nan") {
        f64::NAN
    } else {
        parse_digits(magnitude)?
    };
    Some(if is_negative { -value } else { value })
}

fn parse_digits(text: &[u8]) -> Option<f64> {
    let (mut digits, mut exponent) = (Vec::new(), 0_i64);
    let (mut is_cut, mut has_digits, mut has_point) = (false, false, false);
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        match byte {
            b'0'..=b'9' => {
                has_digits = true;
                exponent -= i64::from(has_point);
                if digits.len() >= MAX_DIGITS {
                    is_cut |= *byte != b'0';
                    exponent += 1;
                } else if *byte != b'0' || !digits.is_empty() {
                    digits.push(byte - b'0');
                }
            }
            b'.' if !has_point => has_point = true,
            b'e' | b'E' if has_digits => {
                exponent = exponent.saturating_add(parse_exponent(tail)?);
                break;
            }
            _ => return None,
        }
        rest = tail;
    }
    if !has_digits {
        return None;
    }
    if is_cut {
        digits.push(1);
        exponent -= 1;
    }
    Some(round(&digits, exponent))
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |value: i64, digit: &u8| value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    // Far outside of every exponent, and far from an overflow.
    Some(sign * digits.iter().fold(0, add).min(1 << 40))
}

/// The double nearest to `digits` times ten to the `exponent`.
fn round(digits: &[u8], exponent: i64) -> f64 {
    let magnitude = exponent.saturating_add(digits.len() as i64);
    if digits.is_empty() || magnitude < -MAX_EXPONENT {
        return 0.0;
    }
    if magnitude > MAX_EXPONENT {
        return f64::INFINITY;
    }
    if digits.len() <= 15 {
        let whole = digits.iter().fold(0.0, |value, digit| value * 10.0 + f64::from(*digit));
        // Both are exact, so the one rounding of the operation is the right one.
        match (usize::try_from(exponent).ok(), usize::try_from(-exponent).ok()) {
            (Some(at), _) if at < EXACT.len() => return whole * EXACT[at],
            (_, Some(at)) if at < EXACT.len() => return whole / EXACT[at],
            _ => {}
        }
    }
    let (mut above, mut below) = (Whole(vec![0]), Whole(vec![1]));
    digits.iter().for_each(|digit| above.multiply_add(10, u32::from(*digit)));
    let power = if exponent < 0 { &mut below } else { &mut above };
    (0..exponent.unsigned_abs()).for_each(|_| power.multiply_add(10, 0));
    quotient(above, below)
}

/// The double nearest to `above / below`, both greater than nothing.
fn quotient(mut above: Whole, mut below: Whole) -> f64 {
    // Shifted so that the quotient is at least 1 and less than 2: its exponent is `shift`.
    let mut shift = above.bits() - below.bits();
    if shift > 0 {
        below.shift_left(shift.unsigned_abs())
    } else {
        above.shift_left(shift.unsigned_abs())
    }
    if above.cmp(&below) == Ordering::Less {
        above.shift_left(1);
        shift -= 1;
    }
    // A double has 53 bits, below its least normal exponent fewer; one more bit and the rest round them.
    let bits = 53 - (-1_022 - shift).clamp(0, 60);
    let mut mantissa = 0_u64;
    for _ in 0..=bits.max(-1) {
        mantissa <<= 1;
        if above.cmp(&below) != Ordering::Less {
            above.subtract(&below);
            mantissa |= 1;
        }
        above.shift_left(1);
    }
    let (half, has_rest) = (mantissa & 1, above.bits() > 0);
    let mut value = mantissa >> 1;
    if bits < 0 {
        return 0.0;
    }
    value += u64::from(half == 1 && (has_rest || value & 1 == 1));
    // 2^(shift - bits + 1) in two steps: alone it may be less than any double.
    let scale = shift - bits + 1;
    (value as f64) * power_of_two(scale / 2) * power_of_two(scale - scale / 2)
}

fn power_of_two(exponent: i64) -> f64 {
    match u64::try_from(exponent + 1_023) {
        Ok(biased) if biased >= 2_047 => f64::INFINITY,
        Ok(biased) if biased > 0 => f64::from_bits(biased << 52),
        _ => 0.0,
    }
}

/// A whole number, 32 bits a part, the lowest first.
struct Whole(Vec<u32>);

impl Whole {
    fn multiply_add(&mut self, factor: u32, add: u32) {
        let mut carry = u64::from(add);
        for part in &mut self.0 {
            carry += u64::from(*part) * u64::from(factor);
            *part = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift_left(&mut self, bits: u64) {
        for _ in 0..bits / 32 {
            self.0.insert(0, 0);
        }
        self.multiply_add(1 << (bits % 32), 0);
    }

    /// The place of the highest bit, from 1; 0 for nothing.
    fn bits(&self) -> i64 {
        let top = self.0.iter().rposition(|part| *part != 0);
        top.map_or(0, |top| top as i64 * 32 + i64::from(32 - self.0[top].leading_zeros()))
    }

    fn cmp(&self, other: &Whole) -> Ordering {
        let part = |whole: &Whole, at: usize| whole.0.get(at).copied().unwrap_or(0);
        let places = (0..self.0.len().max(other.0.len())).rev();
        places.map(|at| part(self, at).cmp(&part(other, at))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// `other` is not greater.
    fn subtract(&mut self, other: &Whole) {
        let mut borrow = 0_i64;
        for (at, part) in self.0.iter_mut().enumerate() {
            let left = i64::from(*part) - i64::from(other.0.get(at).copied().unwrap_or(0)) + borrow;
            *part = left as u32;
            borrow = left >> 32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(text: &str) {
        let expected = text.parse::<f64>().ok();
        assert_eq!(parse(text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
    }

    #[test]
    fn edges_are_read_as_the_standard_library_reads_them() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "e5",
            ".e5",
            "1e",
            "1e+",
            "1.2.3",
            "1_000",
            " 1",
            "0x10",
            "1f",
            "--1",
            "in",
            "nanx",
            "0",
            "-0",
            "0.0e99999999999",
            "1.",
            ".5",
            "+1.5e-3",
            "1e5",
            "1E+05",
            "inf",
            "-Infinity",
            "NaN",
            "1e308",
            "1.7976931348623157e308",
            "1.7976931348623158e308",
            "1.7976931348623159e308",
            "1e309",
            "2.2250738585072014e-308",
            "2.2250738585072011e-308",
            "5e-324",
            "2.4703282292062327e-324",
            "2.4703282292062328e-324",
            "1e-324",
            "1e-400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "9007199254740993",
            "9007199254740992.5",
            "9007199254740993.00000000000000000000000000000000001",
            "0.1",
            "123456789012345678901234567890",
            "8.41e21",
            "4.35",
            "2.5e-310",
        ] {
            same(text);
        }
        // Exactly between two doubles, and a digit above it far behind.
        let half = "9007199254740993";
        same(&format!("{half}.{}", "0".repeat(900)));
        same(&format!("{half}.{}1", "0".repeat(900)));
        same(&format!("0.{}1{half}", "0".repeat(300)));
    }

    proptest! {
        #[test]
        fn every_double_is_read_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.30}")] {
                prop_assert_eq!(parse(&text).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{}", text);
            }
        }

        #[test]
        fn any_digits_are_read_as_the_standard_library_reads_them(
            digits in "[0-9]{1,40}", point in 0_usize..40, exponent in -360_i32..360,
        ) {
            let (whole, fraction) = digits.split_at(point.min(digits.len()));
            let text = format!("{whole}.{fraction}e{exponent}");
            prop_assert_eq!(parse(&text).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{}", text);
        }

        #[test]
        fn any_text_is_a_number_or_none(text in "[-+.eE0-9infaINFA]{0,12}") {
            prop_assert_eq!(parse(&text).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{}", text);
        }
    }
}
