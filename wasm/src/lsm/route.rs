//! Route: the shard of each row.
//!
//! A shard's id is the version 5 UUID of a name in a namespace of LanceDB's: `bucket-<n>`, `unsharded`, or `identity-` and the bytes of a
//! value. A bucket is a 32-bit Murmur3 of a value, of which the lower 31 bits are divided by the number of buckets. Its seed is 0, and it
//! mixes each byte behind the last whole word as a word of its own, its sign extended.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::wal::ShardId;

const NAMESPACE: &[u8; 16] = b"LSMWRITE_SHARD01";

/// Spreads the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Router {
    Bucket(u32),
    Identity,
    Unsharded,
}

impl Router {
    /// Whether the values of a type can be spread so.
    pub fn takes(self, data_type: &DataType) -> bool {
        use DataType as D;
        let is_exact = matches!(data_type, D::Boolean | D::Utf8 | D::LargeUtf8) || data_type.is_integer();
        match self {
            Router::Unsharded => true,
            Router::Identity => is_exact,
            Router::Bucket(_) => {
                is_exact
                    || matches!(data_type, D::Float32 | D::Float64 | D::Date32)
                    || matches!(data_type, D::Time32(_) | D::Time64(_) | D::Timestamp(_, _))
            }
        }
    }

    /// The shard of each row of a column.
    ///
    /// # Errors
    /// `InvalidInput` for a null where rows are spread by the value itself, and for a type that is not spread.
    pub fn shards(self, column: &ArrayRef) -> Result<Vec<ShardId>> {
        let (rows, data) = (0..column.len(), column.to_data());
        match self {
            Router::Unsharded => Ok(vec![unsharded_id(); column.len()]),
            Router::Bucket(count) => {
                // A digest for each bucket that occurs: an upsert of one row needs one.
                let mut ids: SortedMap<u32, ShardId> = SortedMap::new();
                let mut of = |row| {
                    let bucket = bucket(column, &data, row, count)?;
                    Ok(*ids.or_insert_with(bucket, || bucket_id(bucket)))
                };
                rows.map(&mut of).collect()
            }
            Router::Identity => rows
                .map(|row| {
                    if column.is_null(row) {
                        let message = "merge_insert: identity sharding does not support null routing values";
                        return Err(Error::invalid_input(message));
                    }
                    let mut name = b"identity-".to_vec();
                    match value(column, &data, row)? {
                        Value::Bits { bits, width } => {
                            name.extend_from_slice(bits.to_le_bytes().get(..width).unwrap_or_default());
                        }
                        Value::Text(text) => name.extend_from_slice(text.as_bytes()),
                    }
                    Ok(named(&name))
                })
                .collect(),
        }
    }
}

/// The ids of all buckets, in order.
pub fn bucket_ids(count: u32) -> Vec<ShardId> {
    (0..count).map(bucket_id).collect()
}

fn bucket_id(bucket: u32) -> ShardId {
    named(format!("bucket-{bucket}").as_bytes())
}

/// The id of the shard where there is one.
pub(crate) fn unsharded_id() -> ShardId {
    named(b"unsharded")
}

/// The bucket of a value; a null is in the first one.
fn bucket(column: &ArrayRef, data: &ArrayData, row: usize, count: u32) -> Result<u32> {
    if column.is_null(row) {
        return Ok(0);
    }
    let hash = match value(column, data, row)? {
        Value::Bits { bits, width: 8 } => {
            let low = mix(0, bits as u32);
            finish(mix(low, (bits >> 32) as u32), 8)
        }
        Value::Bits { bits, .. } => finish(mix(0, bits as u32), 4),
        Value::Text(text) => {
            let (words, rest) = text.as_bytes().as_chunks::<4>();
            let hash = words.iter().fold(0, |hash, word| mix(hash, u32::from_le_bytes(*word)));
            let hash = rest.iter().fold(hash, |hash, byte| mix(hash, i32::from(*byte as i8) as u32));
            finish(hash, text.len() as u32)
        }
    };
    Ok((hash & 0x7fff_ffff) % count.max(1))
}

/// A value as it is hashed and named.
enum Value<'a> {
    /// `width` bytes of the column's own; signed ones with their sign, up to 32 bits and up to 64.
    Bits {
        bits: u64,
        width: usize,
    },
    Text(&'a str),
}

fn value<'a>(column: &'a ArrayRef, data: &ArrayData, row: usize) -> Result<Value<'a>> {
    let text = match column.data_type() {
        DataType::Boolean => return Ok(Value::Bits { bits: u64::from(column.as_boolean().value(row)), width: 1 }),
        DataType::Utf8 => column.as_string::<i32>().value(row),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row),
        _ => return number(data, row),
    };
    Ok(Value::Text(text))
}

fn number(data: &ArrayData, row: usize) -> Result<Value<'static>> {
    let data_type = data.data_type();
    let refused = || Error::invalid_input(format!("rows cannot be spread by values of type {data_type}"));
    let width = data_type.primitive_width().filter(|width| *width <= 8).ok_or_else(refused)?;
    let start = data.offset().checked_add(row).and_then(|at| at.checked_mul(width)).ok_or_else(refused)?;
    let bytes = data.buffers().first().and_then(|buffer| buffer.get(start..start + width)).ok_or_else(refused)?;
    let mut all = [0; 8];
    let (low, high) = all.split_at_mut(width);
    low.copy_from_slice(bytes);
    let is_unsigned = data_type.is_unsigned_integer();
    high.fill(if !is_unsigned && bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 });
    let bits = u64::from_le_bytes(all);
    // Of equal numbers one is taken: zero without a sign, one NaN.
    let bits = match data_type {
        DataType::Float32 => {
            let value = f32::from_bits(bits as u32);
            if value == 0.0 {
                0
            } else if value.is_nan() {
                0x7fc0_0000
            } else {
                bits
            }
        }
        DataType::Float64 => {
            let value = f64::from_bits(bits);
            if value == 0.0 {
                0
            } else if value.is_nan() {
                0x7ff8_0000_0000_0000
            } else {
                bits
            }
        }
        _ => bits,
    };
    Ok(Value::Bits { bits, width })
}

fn mix(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, length: u32) -> u32 {
    let hash = hash ^ length;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The version 5 UUID of a name.
fn named(name: &[u8]) -> ShardId {
    let digest = sha1(&[NAMESPACE, name].concat());
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(digest.iter().flat_map(|word| word.to_be_bytes())) {
        *to = from;
    }
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    ShardId(id)
}

/// SHA-1, for names only: it protects nothing.
fn sha1(bytes: &[u8]) -> [u32; 5] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0_u32];
    for block in padded.as_chunks::<64>().0 {
        let mut words = [0; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (mixed, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    state
}

#[cfg(test)]
mod tests;
