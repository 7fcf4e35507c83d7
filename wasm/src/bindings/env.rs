//! The clock and the randomness of JavaScript.

use wasm_bindgen::prelude::*;

use crate::env::Env;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    fn fill_random(bytes: &mut [u8]);
}

/// `Date.now` and `crypto.getRandomValues`.
pub struct HostEnv;

impl Env for HostEnv {
    fn now_ns(&self) -> u64 {
        // Milliseconds, perhaps with a fraction: as a float they would lose digits when multiplied up to nanoseconds.
        js_sys::Date::now().max(0.0) as u64 * 1_000_000
    }

    fn random_u64(&self) -> u64 {
        let mut bytes = [0u8; 8];
        fill_random(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}
