//! The wasm edge.
