//! The macro that makes a kernel of a function: an exported entry point that reads the packed arguments, and the
//! record that describes it.

/// Defines a kernel.
///
/// The first parameter is the work-group; the others are read from the packed block at the offsets of a C structure
/// with the same members. Each is a `Copy` type with a C layout. Limits stand before the function, in this order:
/// `#[group_max = 256]` (most work-items in a group, else the device's) and `#[shared = 1024]` (bytes of static
/// shared memory, reached by [`WorkGroup::fixed`](crate::WorkGroup::fixed)).
///
/// ```
/// wharf_kernel::kernel! {
///     /// Multiplies `n` values by `by`.
///     pub fn scale(group: &WorkGroup, out: *mut f32, n: u32, by: f32) {
///         let first = group.first_x() as usize;
///         for i in first..(first + group.items() as usize).min(n as usize) {
///             // SAFETY: the launch promised `n` values behind `out`, and each belongs to one group.
///             unsafe { *out.add(i) *= by }
///         }
///     }
/// }
/// ```
#[macro_export]
macro_rules! kernel {
    (
        $(#[doc = $doc:expr])*
        $(#[group_max = $group_max:expr])?
        $(#[shared = $shared:expr])?
        pub fn $name:ident($group:ident: &WorkGroup $(, $arg:ident: $type:ty)* $(,)?) $body:block
    ) => {
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// `args` are the packed arguments and `group` the work-group of a launch; the arguments keep the kernel's
        /// own promises.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(args: *const u8, group: *const $crate::WorkGroup) {
            #[allow(dead_code)] // Only its layout is used.
            #[repr(C)]
            struct Args { $($arg: $type,)* }
            const PARAMS: usize = <[&str]>::len(&[$(stringify!($arg)),*]);
            const NAME: &str = stringify!($name);
            type Record = $crate::record::Record<PARAMS, { $crate::record::padded(NAME.len()) }>;
            #[used]
            #[unsafe(link_section = ".wharf.kernels")]
            static RECORD: Record = Record::new(
                NAME,
                size_of::<Args>() as u32,
                $crate::kernel!(@or 0, $($group_max)?),
                $crate::kernel!(@or 0, $($shared)?),
                [$($crate::record::Param {
                    offset: core::mem::offset_of!(Args, $arg) as u32,
                    size: size_of::<$type>() as u32,
                    align: align_of::<$type>() as u32,
                    flags: 0,
                },)*],
            );
            #[allow(clippy::too_many_arguments)] // As many as the kernel has.
            #[inline(always)]
            fn body($group: &$crate::WorkGroup $(, $arg: $type)*) $body
            let _ = args;
            $(
                // SAFETY: the block is as long as the record says, so the member lies inside it.
                let at = unsafe { args.add(core::mem::offset_of!(Args, $arg)) };
                // SAFETY: the launch put a value of this type there; it need not be aligned.
                let $arg = unsafe { at.cast::<$type>().read_unaligned() };
            )*
            // SAFETY: the device keeps the work-group alive and unchanged for the call.
            body(unsafe { &*group } $(, $arg)*)
        }
    };
    (@or $default:expr, ) => { $default };
    (@or $default:expr, $value:expr) => { $value };
}
