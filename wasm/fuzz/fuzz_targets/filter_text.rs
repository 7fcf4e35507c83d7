#![no_main]

#[global_allocator]
static ALLOCATOR: lancelet_fuzz::allocation::Limited = lancelet_fuzz::allocation::Limited;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lancelet_fuzz::run(lancelet_fuzz::filter_text, bytes));
