//! The macros that make a plugin of a backend. [`plugin!`](crate::plugin!) writes a [`Plugin`](crate::export::Plugin)
//! for a program that links the backend in; [`export!`](crate::export!) belongs into a shared library of its own, the
//! only place for symbols with fixed names: two libraries that define them cannot be linked into one program.
//!
//! An example is in `tests/backends/null/plugin`.

/// Writes a [`Plugin`](crate::export::Plugin) type without any symbol. Fields in this order: `backend` (a type),
/// `id`, `vendor`, `version`, `devices` (a `fn() -> Result<Vec<D>, Fault>`), `roles` (any of `programs`,
/// `host_access`, `properties`), then if wanted `text` (a `fn(u32) -> Option<String>`), `build`, `min_host_minor`,
/// `devices_of` (the backend that its devices belong to, if not the id), `licence`.
#[macro_export]
macro_rules! plugin {
    ($(#[$doc:meta])* $vis:vis struct $name:ident, $($fields:tt)*) => {
        $(#[$doc])* $vis struct $name;
        $crate::__plugin_impl! { $name, false, $($fields)* }
    };
}

/// Makes the crate a plugin: the entry `wharf_plugin_entry_v1`, the root module of abi_stable, and the record in the
/// file that is read without running it. Once in a crate of type `cdylib`. Fields as in [`plugin!`](crate::plugin!).
#[macro_export]
macro_rules! export {
    (backend: $backend:ty, id: $id:expr, vendor: $vendor:expr, version: $version:expr, $($fields:tt)*) => {
        struct WharfPlugin;
        $crate::__plugin_impl! {
            WharfPlugin, true,
            backend: $backend, id: $id, vendor: $vendor, version: $version, $($fields)*
        }
        $crate::__export_symbols! { WharfPlugin, $id, $vendor, $version }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __plugin_impl {
    (
        $name:ident, $own_library:expr,
        backend: $backend:ty,
        id: $id:expr, vendor: $vendor:expr, version: $version:expr,
        devices: $devices:expr,
        roles: [$($role:ident),* $(,)?]
        $(, text: $text:expr)?
        $(, build: $build:expr)?
        $(, min_host_minor: $min:expr)?
        $(, devices_of: $devices_of:expr)?
        $(, licence: $licence:expr)?
        $(,)?
    ) => {
        impl $crate::export::Plugin for $name {
            type Device = $backend;
            const NAMES: $crate::tables::Names = $crate::tables::Names {
                id: $crate::tables::Str::new($id),
                vendor: $crate::tables::Str::new($vendor),
                version: $crate::tables::Str::new($version),
                build: $crate::tables::Str::new($crate::__first!($($build,)? "")),
            };
            const MIN_HOST_MINOR: u16 = $crate::__first!($($min,)? 0);
            $(const DEVICES_OF: ::core::option::Option<&'static str> = ::core::option::Option::Some($devices_of);)?
            $(const LICENCE: ::core::option::Option<&'static str> = ::core::option::Option::Some($licence);)?
            const OWN_LIBRARY: bool = $own_library;
            const TABLES: $crate::export::Tables<Self> =
                $crate::__roles!($crate::export::Tables::<Self>::CORE; $($role)*);
            fn devices() -> ::core::result::Result<::std::vec::Vec<$backend>, $crate::Fault> {
                $devices()
            }
            fn text(key: u32) -> ::core::option::Option<::std::string::String> {
                $crate::__first!($($text,)? $crate::errors::no_source)(key)
            }
            fn home() -> &'static $crate::export::Home<$backend> {
                static HOME: $crate::export::Home<$backend> = $crate::export::Home::new();
                &HOME
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __roles {
    ($tables:expr;) => { $tables };
    ($tables:expr; programs $($rest:ident)*) => { $crate::__roles!($tables.with_programs(); $($rest)*) };
    ($tables:expr; host_access $($rest:ident)*) => { $crate::__roles!($tables.with_host_access(); $($rest)*) };
    ($tables:expr; properties $($rest:ident)*) => { $crate::__roles!($tables.with_properties(); $($rest)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_symbols {
    ($name:ident, $id:expr, $vendor:expr, $version:expr) => {
        // The names of these symbols are the ABI's; one library defines them once.
        #[allow(unsafe_code)]
        const _: () = {
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn wharf_plugin_entry_v1(
                host_major: u32,
                host_minor: u32,
            ) -> $crate::tables::To<$crate::tables::PluginV1> {
                // SAFETY: asks for nothing.
                unsafe { $crate::export::entry::<$name>(host_major, host_minor) }
            }

            extern "C" fn root() -> $crate::handshake::RootResult {
                $crate::handshake::root(wharf_plugin_entry_v1)
            }

            #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
            pub static ROOT: $crate::handshake::RootHeader = $crate::handshake::root_header(root);

            const CPU: [u8; $crate::cpu::joined_len(&$crate::__cpu_features!())] =
                $crate::cpu::joined(&$crate::__cpu_features!());

            const META: $crate::meta::Meta<'static> = $crate::meta::Meta::new(
                $id,
                $vendor,
                $version,
                <$name as $crate::export::Plugin>::MIN_HOST_MINOR,
            )
            .with_backend(<$name as $crate::export::Plugin>::DEVICES_OF)
            .with_licence(<$name as $crate::export::Plugin>::LICENCE)
            .with_cpu_features(match ::core::str::from_utf8(&CPU) {
                Ok(text) => text,
                Err(_) => panic!("names of features are plain"),
            });

            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__wharf_plugin"))]
            #[cfg_attr(windows, unsafe(link_section = ".wharf"))]
            #[cfg_attr(not(any(target_vendor = "apple", windows)), unsafe(link_section = ".wharf.plugin"))]
            static RECORD: [u8; META.record_len()] = META.record();
        };
    };
}
