//! The abi_stable side of opening a plugin: from the address of its root symbol to its entry, with the types of
//! everything that is reached through it compared in both directions of age. With `tables` the only place that names
//! abi_stable.
//!
//! abi_stable's own way in is not used: it keeps one module per Rust type (a second plugin would be the first one),
//! opens libraries lazily, and compares one way only, which refuses a plugin that is older than its host.
//!
//! # Safety
//! [`check_root`] trusts that the symbol is what its magic says, and that its library stays loaded.
#![allow(unsafe_code)]

use crate::{
    refusal::Refusal,
    tables::{EntryFn, MAJOR, Root, RootRef},
};
use abi_stable::{
    StableAbi,
    abi_stability::abi_checking::{AbiInstability, AbiInstabilityErrors, check_layout_compatibility},
    library::{
        AbiHeader, AbiHeaderRef, CheckTypeLayout, LibHeader, LibraryError, RootModule, RootModuleResult,
    },
    prefix_type::PrefixRefTrait,
    sabi_types::VersionNumber,
    std_types::ROk,
    type_layout::TypeLayout,
};
use core::{ffi::c_void, fmt::Write, mem::transmute, ptr::NonNull};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    string::{String, ToString},
};

/// Name of the C symbol, an [`EntryFn`].
pub const ENTRY_SYMBOL: &str = "wharf_plugin_entry_v1";
/// Name of the symbol of a Rust plugin's root module.
pub const ROOT_SYMBOL: &str = abi_stable::library::ROOT_MODULE_LOADER_NAME;

/// What [`ROOT_SYMBOL`] is.
pub type RootHeader = LibHeader;
/// What makes the root module.
pub type RootResult = RootModuleResult;

/// For [`export!`](crate::export!): the header around a function that makes the root module.
pub const fn root_header(make: extern "C" fn() -> RootResult) -> RootHeader {
    // SAFETY: `export!` gives a function that answers `root`, which is made of a `RootRef`.
    unsafe { LibHeader::from_constructor::<RootRef>(make, CheckTypeLayout::Yes) }
}

/// For [`export!`](crate::export!): the root module of a plugin with this entry.
pub fn root(entry: EntryFn) -> RootResult {
    // SAFETY: `LibHeader` erases the type and casts it back to the one `root_header` names, `RootRef`.
    ROk(unsafe { Root::with_entry(entry).to_prefix_ref().cast() })
}

/// From a Rust plugin's root symbol to its entry.
///
/// # Errors
/// Not of this abi_stable, another product, another major, no layout, other types.
///
/// # Safety
/// `header` is the address of the symbol [`ROOT_SYMBOL`] in a library that is never unloaded.
pub unsafe fn check_root(header: *const c_void) -> Result<EntryFn, Refusal> {
    let Some(header) = NonNull::new(header.cast_mut()).filter(|h| h.cast::<AbiHeader>().is_aligned()) else {
        return Err(Refusal::Value { what: "address of the root symbol", given: header as u64, needed: 8 });
    };
    // SAFETY: `AbiHeaderRef` is transparent over a non-null pointer to an `AbiHeader`, which begins every root symbol.
    let header = unsafe { transmute::<NonNull<c_void>, AbiHeaderRef>(header) };
    match catch_unwind(AssertUnwindSafe(|| check(header))) {
        Ok(result) => result,
        Err(panic) => {
            let reason = panic.downcast_ref::<String>().cloned();
            Err(Refusal::Panicked { reason: reason.unwrap_or_else(|| "no message".into()) })
        }
    }
}

fn check(header: AbiHeaderRef) -> Result<EntryFn, Refusal> {
    let header = header.upgrade().map_err(|e| Refusal::NotAbiStable { reason: first_line(&e) })?;
    let consts = header.root_mod_consts();
    if consts.base_name().as_str() != RootRef::BASE_NAME {
        return Err(Refusal::OtherProduct { name: consts.name().as_str().to_string() });
    }
    let plugin = VersionNumber::new(header.version_strings())
        .map_err(|_| Refusal::Text { what: "version of the root module" })?;
    let major = u16::try_from(plugin.major).unwrap_or(u16::MAX);
    if major != MAJOR {
        return Err(Refusal::Major { host: MAJOR, plugin: major });
    }
    compare(RootRef::LAYOUT, header.layout().ok_or(Refusal::NoLayout)?)?;
    // SAFETY: the layouts were compared just now, in the direction in which they fit.
    let root = unsafe { header.init_root_module_with_unchecked_layout::<RootRef>() };
    Ok(root.map_err(|e| Refusal::Root { reason: first_line(&e) })?.entry())
}

/// Fields of the older side are the beginning of the newer side's, whichever that is.
fn compare(host: &'static TypeLayout, plugin: &'static TypeLayout) -> Result<(), Refusal> {
    let Err(forward) = check_layout_compatibility(host, plugin) else { return Ok(()) };
    if check_layout_compatibility(plugin, host).is_ok() {
        return Ok(());
    }
    Err(Refusal::Layout { reason: reason(&forward), detail: forward.to_string() })
}

fn first_line(error: &LibraryError) -> String {
    let text = error.to_string();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("unknown reason").to_string()
}

/// The first difference: the path to it by tables and fields, and what is different on the two sides.
fn reason(errors: &AbiInstabilityErrors) -> String {
    let found = errors.errors.iter().find(|error| !error.errs.is_empty());
    let Some(error) = found else { return "unknown difference".into() };
    let (mut text, mut last) = (String::new(), None);
    for step in error.stack_trace.iter() {
        let name = match step.expected {
            abi_stable::type_layout::TLFieldOrFunction::Field(field) => field.name(),
            abi_stable::type_layout::TLFieldOrFunction::Function(function) => function.name.as_str(),
        };
        // What a pointer points to and a parameter without a name have none of their own; a field that is a function
        // is there twice.
        if !name.starts_with(|c: char| c.is_alphabetic()) || last == Some(name) {
            continue;
        }
        last = Some(name);
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(name);
    }
    let _ = write!(text, ": {}", difference(&error.errs[0]));
    text
}

/// What is different, where a few words can say it; else abi_stable's name for it.
fn difference(error: &AbiInstability) -> String {
    match error {
        AbiInstability::Name(types) => {
            format!("{} here, {} there", types.expected.name(), types.found.name())
        }
        AbiInstability::FieldCountMismatch(count) => {
            format!("{} fields here, {} there", count.expected, count.found)
        }
        AbiInstability::UnexpectedField(field) => {
            format!("field `{}` here, `{}` there", field.expected.name(), field.found.name())
        }
        AbiInstability::Size(size) => format!("{} bytes here, {} there", size.expected, size.found),
        AbiInstability::Alignment(align) => {
            format!("alignment {} here, {} there", align.expected, align.found)
        }
        other => variant(&format!("{other:?}")).into(),
    }
}

/// `FieldCountMismatch(ExpectedFound { .. })` without what it holds.
fn variant(debug: &str) -> &str {
    debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(debug)
}

#[cfg(test)]
mod tests {
    //! The same table in three ages, and one that is another: what abi_stable compares are names, not paths.
    use super::*;

    macro_rules! age {
        ($age:ident: $($field:ident: $type:ty),* ; $($later:ident: $later_type:ty),*) => {
            #[allow(dead_code)]
            mod $age {
                use abi_stable::StableAbi;
                #[repr(C)]
                #[derive(StableAbi)]
                #[sabi(kind(Prefix(prefix_ref = TableRef, prefix_fields = TableFields)))]
                pub(super) struct Table {
                    $(pub(super) $field: $type,)*
                    #[sabi(last_prefix_field)]
                    pub(super) last: extern "C" fn(u64) -> u32,
                    $(pub(super) $later: $later_type,)*
                }
            }
        };
    }
    age!(minor_0: first: u64; );
    age!(minor_1: first: u64; second: extern "C" fn(u32) -> u32);
    age!(minor_2: first: u64; second: extern "C" fn(u32) -> u32, third: u32);
    age!(clash: first: u64; second: extern "C" fn(u64) -> u32);
    age!(retyped: first: u32; );

    #[test]
    fn tables_of_any_two_ages_fit_both_ways() {
        let ages = [minor_0::TableRef::LAYOUT, minor_1::TableRef::LAYOUT, minor_2::TableRef::LAYOUT];
        for host in ages {
            for plugin in ages {
                assert_eq!(compare(host, plugin), Ok(()));
            }
        }
    }

    #[test]
    fn a_field_of_another_type_is_refused_in_one_line_that_names_it() {
        for (host, plugin, wanted) in [
            (
                minor_0::TableRef::LAYOUT,
                retyped::TableRef::LAYOUT,
                "types differ: first: u64 here, u32 there",
            ),
            (minor_1::TableRef::LAYOUT, clash::TableRef::LAYOUT, "types differ: second: u32 here, u64 there"),
        ] {
            let refusal = compare(host, plugin).unwrap_err();
            let line = refusal.to_string();
            assert_eq!(line, wanted);
            let Refusal::Layout { detail, .. } = refusal else { panic!("{line}") };
            assert!(detail.lines().count() > 3);
        }
    }
}
