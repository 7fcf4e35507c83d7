//! Package lance.table: the ids and the versions of a fragment's rows.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct RowIdSequence {
    #[prost(message, repeated, tag = "1")]
    pub segments: Vec<U64Segment>,
}

#[derive(Clone, PartialEq, Message)]
pub struct U64Segment {
    #[prost(oneof = "u64_segment::Segment", tags = "1, 2, 3, 4, 5")]
    pub segment: Option<u64_segment::Segment>,
}

pub mod u64_segment {
    use super::{EncodedU64Array, Message, Oneof};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Segment {
        #[prost(message, tag = "1")]
        Range(Range),
        #[prost(message, tag = "2")]
        RangeWithHoles(RangeWithHoles),
        #[prost(message, tag = "3")]
        RangeWithBitmap(RangeWithBitmap),
        #[prost(message, tag = "4")]
        SortedArray(EncodedU64Array),
        #[prost(message, tag = "5")]
        Array(EncodedU64Array),
    }

    #[derive(Clone, Copy, PartialEq, Message)]
    pub struct Range {
        #[prost(uint64, tag = "1")]
        pub start: u64,
        /// Behind the last one.
        #[prost(uint64, tag = "2")]
        pub end: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct RangeWithHoles {
        #[prost(uint64, tag = "1")]
        pub start: u64,
        #[prost(uint64, tag = "2")]
        pub end: u64,
        /// Ascending.
        #[prost(message, optional, tag = "3")]
        pub holes: Option<EncodedU64Array>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct RangeWithBitmap {
        #[prost(uint64, tag = "1")]
        pub start: u64,
        #[prost(uint64, tag = "2")]
        pub end: u64,
        /// One bit per number of the range, the lowest bit of a byte first.
        #[prost(bytes = "vec", tag = "3")]
        pub bitmap: Vec<u8>,
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct EncodedU64Array {
    #[prost(oneof = "encoded_u64_array::Array", tags = "1, 2, 3")]
    pub array: Option<encoded_u64_array::Array>,
}

pub mod encoded_u64_array {
    use super::{Message, Oneof};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Array {
        /// Offsets of 16 bits from the base.
        #[prost(message, tag = "1")]
        U16(Numbers),
        /// Offsets of 32 bits from the base.
        #[prost(message, tag = "2")]
        U32(Numbers),
        /// The numbers; no base.
        #[prost(message, tag = "3")]
        U64(Numbers),
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Numbers {
        #[prost(uint64, tag = "1")]
        pub base: u64,
        #[prost(bytes = "vec", tag = "2")]
        pub bytes: Vec<u8>,
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct RowDatasetVersionSequence {
    #[prost(message, repeated, tag = "1")]
    pub runs: Vec<RowDatasetVersionRun>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RowDatasetVersionRun {
    /// Only how many numbers it holds counts.
    #[prost(message, optional, tag = "1")]
    pub span: Option<U64Segment>,
    #[prost(uint64, tag = "2")]
    pub version: u64,
}
