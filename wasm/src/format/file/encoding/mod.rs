//! Compressive encodings: how values lie in one buffer.
