//! The only source of time, randomness and ids, so that every run can be repeated.

/// What the engine asks of the outside world besides bytes.
pub trait Env {
    /// Nanoseconds since the Unix epoch. May stand still or jump; the engine never assumes that it grows.
    fn now_ns(&self) -> u64;

    /// 64 random bits.
    fn random_u64(&self) -> u64;
}

/// A version-4 UUID from the environment's randomness, as its 16 bytes.
pub fn random_uuid(env: &dyn Env) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&env.random_u64().to_le_bytes());
    bytes[8..].copy_from_slice(&env.random_u64().to_le_bytes());
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// The hyphenated lower-case text of a UUID.
pub fn format_uuid(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Milliseconds since the Unix epoch, as leases count them.
pub fn now_ms(env: &dyn Env) -> u64 {
    env.now_ns() / 1_000_000
}

/// A seeded environment whose clock moves only when told.
#[cfg(any(test, feature = "testing"))]
pub struct FixedEnv {
    now_ns: std::cell::Cell<u64>,
    state: std::cell::Cell<u64>,
}

#[cfg(any(test, feature = "testing"))]
impl FixedEnv {
    /// `now_ns` is where the clock stands.
    pub fn new(seed: u64, now_ns: u64) -> FixedEnv {
        FixedEnv { now_ns: now_ns.into(), state: seed.into() }
    }

    /// Puts the clock to a time, which may be an earlier one.
    pub fn set_ms(&self, ms: u64) {
        self.now_ns.set(ms * 1_000_000);
    }

    pub fn advance_ms(&self, ms: u64) {
        self.now_ns.set(self.now_ns.get() + ms * 1_000_000);
    }
}

#[cfg(any(test, feature = "testing"))]
impl Env for FixedEnv {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    // SplitMix64: every seed gives a full-period sequence.
    fn random_u64(&self) -> u64 {
        let state = self.state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.state.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_carries_its_version_and_variant_and_repeats_with_its_seed() {
        let text = format_uuid(&random_uuid(&FixedEnv::new(1, 0)));
        assert_eq!(text.len(), 36);
        assert_eq!(text.as_bytes()[14], b'4');
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_eq!(text, format_uuid(&random_uuid(&FixedEnv::new(1, 0))));
    }
}
