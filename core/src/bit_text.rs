//! Bits as text: names joined by `|`, those of several bits first, what has no name as a number, `80h`; nothing for no bit.
//! The other way round names in any case, and numbers. The form is that of IREE's bit formatters.

use crate::{
    bits::{Access, MemoryType, Usage},
    fault::{Fault, Kind, Site, Why},
};
use bitflags::Flags;
use core::fmt;

/// Writes the names of `bits`.
fn write<F: Flags<Bits = u32>>(bits: &F, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mut left, mut first) = (bits.bits(), true);
    let mut bar =
        |f: &mut fmt::Formatter<'_>| if core::mem::take(&mut first) { Ok(()) } else { f.write_str("|") };
    for count in (1..=u32::BITS).rev() {
        for flag in F::FLAGS {
            let named = flag.value().bits();
            if named.count_ones() == count && left & named == named {
                bar(f)?;
                f.write_str(flag.name())?;
                left &= !named;
            }
        }
    }
    if left != 0 {
        bar(f)?;
        write!(f, "{left:X}h")?;
    }
    Ok(())
}

/// Reads names and numbers joined by `|`.
fn read<F: Flags<Bits = u32>>(text: &str) -> Result<F, Fault> {
    let mut bits = 0;
    for (place, word) in text.split('|').enumerate() {
        let word = word.trim();
        if word.is_empty() {
            continue;
        }
        let named = F::FLAGS.iter().find(|flag| flag.name().eq_ignore_ascii_case(word));
        let number = || match word.strip_suffix(['h', 'H']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        let unknown = Fault::caller(Kind::InvalidArgument, Site::Allocate, Why::Entry, [place as u64, 0]);
        bits |= named.map(|flag| flag.value().bits()).or_else(number).ok_or(unknown)?;
    }
    Ok(F::from_bits_retain(bits))
}

macro_rules! text {
    ($($type:ty),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(self, f)
            }
        }
        impl core::str::FromStr for $type {
            type Err = Fault;
            fn from_str(text: &str) -> Result<Self, Fault> {
                read(text)
            }
        }
    )*};
}
text!(MemoryType, Access, Usage);

#[cfg(all(test, feature = "alloc"))]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    /// Values and texts of IREE's formatter for the same bits.
    #[test]
    fn bits_are_written_by_name_the_larger_names_first() {
        let both = MemoryType::HOST_LOCAL | MemoryType::DEVICE_LOCAL;
        assert_eq!(both.to_string(), "HOST_LOCAL|DEVICE_LOCAL");
        assert_eq!(MemoryType::from_bits_retain(0x82).to_string(), "HOST_VISIBLE|80h");
        assert_eq!(MemoryType::empty().to_string(), "");
        assert_eq!(Usage::ALL.to_string(), "ALL");
        assert_eq!((Access::READ | Access::MAY_ALIAS).to_string(), "READ|MAY_ALIAS");
    }

    #[test]
    fn text_is_read_in_any_case_and_numbers_too() {
        let read = |text: &str| text.parse::<MemoryType>();
        assert_eq!(
            read("host_local | Device_Visible"),
            Ok(MemoryType::HOST_LOCAL | MemoryType::DEVICE_VISIBLE)
        );
        assert_eq!(read(""), Ok(MemoryType::empty()));
        assert_eq!(read("||HOST_CACHED|"), Ok(MemoryType::HOST_CACHED));
        assert_eq!(read("HOST_VISIBLE|80h"), Ok(MemoryType::from_bits_retain(0x82)));
        assert_eq!(read("6"), Ok(MemoryType::HOST_LOCAL));
        assert_eq!(read("HOST_LOCAL|NONSENSE").unwrap_err().kind, Kind::InvalidArgument);
        assert_eq!(read("4294967296").unwrap_err().kind, Kind::InvalidArgument);
        for bits in 0..256 {
            let kind = MemoryType::from_bits_retain(bits);
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }
}
