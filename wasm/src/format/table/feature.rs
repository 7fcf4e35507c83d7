//! Feature flags: what a table asks of its readers and writers.
