//! Features of the processor beyond what every one of its kind has: which of them a build asks for, and whether this
//! machine has one. Names are those of rustc's `target_feature`.

/// For [`export!`](crate::export!): what the crate in which it stands is built for, each name with whether it is on.
/// Feature flags of the compiler hold for the crate that is compiled, so this must be expanded there.
#[doc(hidden)]
#[macro_export]
macro_rules! __cpu_features {
    () => {
        $crate::__cpu_features!(
            "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "lzcnt" "movbe" "cmpxchg16b" "xsave" "avx" "avx2" "fma" "f16c"
            "bmi1" "bmi2" "adx" "aes" "pclmulqdq" "sha" "rdrand" "rdseed" "gfni" "vaes" "vpclmulqdq" "avxvnni"
            "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2"
            "avx512vnni" "avx512bitalg" "avx512vpopcntdq" "avx512bf16" "avx512fp16"
            "lse" "rdm" "crc" "dotprod" "fp16" "bf16" "i8mm" "rcpc" "sha2" "sha3" "sve" "sve2"
        )
    };
    ($($name:literal)+) => { [$(($name, ::core::cfg!(target_feature = $name))),+] };
}

/// Bytes of the names that are on, with commas between.
pub const fn joined_len(features: &[(&str, bool)]) -> usize {
    let (mut len, mut i) = (0, 0);
    while i < features.len() {
        if features[i].1 {
            len += features[i].0.len() + (len > 0) as usize;
        }
        i += 1;
    }
    len
}

/// The names that are on, with commas between; `N` is [`joined_len`].
pub const fn joined<const N: usize>(features: &[(&str, bool)]) -> [u8; N] {
    let (mut text, mut at, mut i) = ([0; N], 0, 0);
    while i < features.len() {
        if features[i].1 {
            if at > 0 {
                text[at] = b',';
                at += 1;
            }
            let (name, mut j) = (features[i].0.as_bytes(), 0);
            while j < name.len() {
                text[at + j] = name[j];
                j += 1;
            }
            at += name.len();
        }
        i += 1;
    }
    text
}

/// Whether this machine has a feature; none if the name is not known here.
pub fn has(name: &str) -> Option<bool> {
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, has)| has())
}

/// The first of the names, with commas between, that this machine lacks or that is not known here.
pub fn missing(names: &str) -> Option<&str> {
    names.split(',').map(str::trim).find(|name| !name.is_empty() && has(name) != Some(true))
}

macro_rules! known {
    ($($arch:literal $detected:ident [$($name:tt)+])+) => {$(
        #[cfg(target_arch = $arch)]
        const KNOWN: &[(&str, fn() -> bool)] = &[$(($name, || std::arch::$detected!($name))),+];
    )+};
}

known! {
    "x86_64" is_x86_feature_detected [
        "sse" "sse2" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "lzcnt" "movbe" "cmpxchg16b" "xsave" "avx" "avx2" "fma"
        "f16c" "bmi1" "bmi2" "adx" "aes" "pclmulqdq" "sha" "rdrand" "rdseed" "gfni" "vaes" "vpclmulqdq" "avxvnni"
        "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vnni"
        "avx512bitalg" "avx512vpopcntdq" "avx512bf16" "avx512fp16"
    ]
    "aarch64" is_aarch64_feature_detected [
        "neon" "aes" "lse" "rdm" "crc" "dotprod" "fp16" "bf16" "i8mm" "rcpc" "sha2" "sha3" "sve" "sve2"
    ]
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const KNOWN: &[(&str, fn() -> bool)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_on_are_joined() {
        const FEATURES: [(&str, bool); 4] = [("a", false), ("bc", true), ("d", true), ("e", false)];
        const LEN: usize = joined_len(&FEATURES);
        assert_eq!(&joined::<LEN>(&FEATURES), b"bc,d");
        assert_eq!(joined_len(&FEATURES[..1]), 0);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_every_machine_of_a_kind_has_is_never_missing() {
        assert_eq!(missing("sse,sse2"), None);
        assert_eq!(missing(""), None);
    }

    #[test]
    fn the_first_feature_that_is_missing_or_not_known_is_named() {
        assert_eq!(missing(" quantum , sse"), Some("quantum"));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_a_build_can_ask_for_is_known_to_the_host() {
        let all = crate::__cpu_features!();
        let here = all.iter().filter(|(name, _)| has(name).is_some()).count();
        assert!(here >= 37, "{here} of {}", all.len());
    }
}
