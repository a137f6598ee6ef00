/* wharf_plugin.h: what a plugin of Wharf is in C11 or C++17. Made from the tables in plugins/abi; do not edit.
 *
 * A plugin is a shared library that exports `wharf_plugin_entry_v1` and has a record in its section `.wharf.plugin`
 * (WHARF_PLUGIN_META). It is never unloaded; `close` ends it.
 *
 * Rules. `struct_size` stands first in every table and argument struct; a reader takes the smaller of the two sizes and
 * treats the rest as zero, so tables only grow at the end and a missing function is NULL. Arguments are borrowed for the
 * call. Handles are words of the plugin's own choice, 0 is none. Numbers of codes, kinds and flags are open sets.
 * Every function may be called from any thread, except: `submit` from one thread at a time for each queue; `destroy` and
 * `unload` when nothing of the object is pending or inside; `close` when nothing of the plugin is.
 * Targets have 64-bit pointers and 64-bit atomics.
 */
#ifndef WHARF_PLUGIN_H
#define WHARF_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WHARF_ASSERT(condition, text) static_assert(condition, text)
#else
#define WHARF_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#if defined(_WIN32)
#define WHARF_EXPORT __declspec(dllexport)
#else
#define WHARF_EXPORT __attribute__((visibility("default")))
#endif

