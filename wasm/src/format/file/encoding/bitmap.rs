//! Bits of booleans and of item validity, LSB first. Bits behind the last one are zero.

/// Appends `n` bits of `source` from bit `start` to `bitmap`, which has `len` bits. `source` holds `start + n` bits.
pub(in crate::format::file) fn append(bitmap: &mut Vec<u8>, len: usize, source: &[u8], start: usize, n: usize) {
    // Single bits up to a byte boundary of the target, whole bytes, and the rest.
    let head = n.min(len.wrapping_neg() % 8);
    for i in 0..head {
        push(bitmap, len + i, bit(source, start + i));
    }
    let (from, to, bytes) = (start + head, len + head, (n - head) / 8);
    let shift = from % 8;
    let whole = source.get(from / 8..).unwrap_or_default();
    if bytes > 0 {
        bitmap.resize(to / 8, 0);
        if shift == 0 {
            bitmap.extend_from_slice(&whole[..bytes]);
        } else {
            bitmap.extend(whole.windows(2).take(bytes).map(|pair| pair[0] >> shift | pair[1] << (8 - shift)));
        }
    }
    for i in head + bytes * 8..n {
        push(bitmap, len + i, bit(source, start + i));
    }
}

/// Appends `n` equal bits.
pub(in crate::format::file) fn append_run(bitmap: &mut Vec<u8>, len: usize, n: usize, value: bool) {
    let end = len + n;
    bitmap.resize(end.div_ceil(8), if value { 0xff } else { 0 });
    if value && n > 0 {
        if !len.is_multiple_of(8) {
            bitmap[len / 8] |= 0xff << (len % 8);
        }
        if !end.is_multiple_of(8) {
            bitmap[end / 8] &= !(0xff << (end % 8));
        }
    }
}

pub(in crate::format::file) fn push(bitmap: &mut Vec<u8>, at: usize, value: bool) {
    if bitmap.len() <= at / 8 {
        bitmap.resize(at / 8 + 1, 0);
    }
    bitmap[at / 8] |= u8::from(value) << (at % 8);
}

fn bit(source: &[u8], at: usize) -> bool {
    source.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(bitmap: &[u8], range: std::ops::Range<usize>) -> Vec<bool> {
        range.map(|at| bit(bitmap, at)).collect()
    }

    proptest! {
        #[test]
        fn appended_bits_follow_those_that_were_there(
            source in prop::collection::vec(any::<u8>(), 20),
            first in 0..70usize,
            start in 0..80usize,
            n in 0..80usize,
            ones in 0..20usize,
        ) {
            let mut bitmap = Vec::new();
            append(&mut bitmap, 0, &source, 3, first);
            append_run(&mut bitmap, first, ones, true);
            append(&mut bitmap, first + ones, &source, start, n);
            append_run(&mut bitmap, first + ones + n, 9, false);
            let mut expected = bits(&source, 3..3 + first);
            expected.extend(vec![true; ones]);
            expected.extend(bits(&source, start..start + n));
            expected.extend([false; 9]);
            let len = expected.len();
            prop_assert_eq!(bitmap.len(), len.div_ceil(8));
            prop_assert_eq!(bits(&bitmap, 0..len), expected);
            prop_assert!(bits(&bitmap, len..bitmap.len() * 8).iter().all(|bit| !bit));
        }
    }
}
