//! What the metadata of a field asks of the encoding of its pages.
//!
//! Keys of the field itself go before those of the top-level field that it belongs to. A value that is not understood is as good as
//! none: another writer may know more of them.

use crate::batch::floats;
use crate::format::table::Field;

const COMPRESSION: &str = "lance-encoding:compression";
const BYTE_STREAM_SPLIT: &str = "lance-encoding:bss";
const STRUCTURE: &str = "lance-encoding:structural-encoding";
const RLE_THRESHOLD: &str = "lance-encoding:rle-threshold";
const DICTIONARY_DIVISOR: &str = "lance-encoding:dict-divisor";
const DICTIONARY_RATIO: &str = "lance-encoding:dict-size-ratio";
const DICTIONARY_COMPRESSION: &str = "lance-encoding:dict-values-compression";

/// How values are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ValueCompression {
    /// By what makes the page small.
    #[default]
    Automatic,
    None,
    /// Also when zstd is asked for: both lie in the same place, and every reader has both.
    Lz4,
    Fsst,
}

/// When the bytes of floating point numbers are split into planes; only where these are compressed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ByteStreamSplit {
    /// Where it makes them smaller.
    #[default]
    Automatic,
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structure {
    MiniBlock,
    FullZip,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodingOptions {
    pub(crate) compression: ValueCompression,
    pub(crate) byte_stream_split: ByteStreamSplit,
    pub(crate) structure: Option<Structure>,
    /// Runs per value from which on runs are not encoded as such.
    pub(crate) rle_threshold: f64,
    /// A dictionary holds at most one in so many values.
    pub(crate) dictionary_divisor: usize,
    /// The part of the plain size that a dictionary page may have. Without it, it has to be the smallest form.
    pub(crate) dictionary_ratio: Option<f64>,
    pub(crate) compress_dictionary: bool,
}

impl Default for EncodingOptions {
    fn default() -> EncodingOptions {
        EncodingOptions {
            compression: ValueCompression::Automatic,
            byte_stream_split: ByteStreamSplit::Automatic,
            structure: None,
            rle_threshold: 0.5,
            dictionary_divisor: 2,
            dictionary_ratio: None,
            compress_dictionary: true,
        }
    }
}

impl EncodingOptions {
    pub(crate) fn of(field: &Field, root: &Field) -> EncodingOptions {
        let text = |key| field.metadata.get(key).or_else(|| root.metadata.get(key)).map(String::as_str);
        let number = |key| text(key).and_then(floats::parse);
        let default = EncodingOptions::default();
        EncodingOptions {
            compression: match text(COMPRESSION) {
                Some("none") => ValueCompression::None,
                Some("lz4" | "zstd") => ValueCompression::Lz4,
                Some("fsst") => ValueCompression::Fsst,
                _ => ValueCompression::Automatic,
            },
            byte_stream_split: match text(BYTE_STREAM_SPLIT) {
                Some("on") => ByteStreamSplit::On,
                Some("off") => ByteStreamSplit::Off,
                _ => ByteStreamSplit::Automatic,
            },
            structure: match text(STRUCTURE) {
                Some("miniblock") => Some(Structure::MiniBlock),
                Some("fullzip") => Some(Structure::FullZip),
                _ => None,
            },
            rle_threshold: number(RLE_THRESHOLD)
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .unwrap_or(default.rle_threshold),
            dictionary_divisor: text(DICTIONARY_DIVISOR)
                .and_then(|text| text.parse().ok())
                .filter(|divisor| *divisor > 0)
                .unwrap_or(default.dictionary_divisor),
            dictionary_ratio: number(DICTIONARY_RATIO).filter(|ratio| *ratio > 0.0 && *ratio <= 1.0),
            compress_dictionary: text(DICTIONARY_COMPRESSION) != Some("none"),
        }
    }
}
