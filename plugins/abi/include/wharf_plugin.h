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

/* The version. */
/* Major version of the ABI: another one is another ABI. */
#define WHARF_ABI_MAJOR 1u
/* Minor version: only grows, by additions at the end of tables. */
#define WHARF_ABI_MINOR 0u
/* Number of the draft of this major; hosts and plugins of different drafts refuse each other. 0 once it is final. */
#define WHARF_ABI_DRAFT 2u
/* First bytes of `wharf_plugin_v1`. */
#define WHARF_ABI_MAGIC "WHARFPL1"

/* Names of the tables of `wharf_plugin_v1.query`. */
/* `wharf_device_v1`, mandatory. */
#define WHARF_ID_DEVICE "wharf.device"
/* `wharf_memory_v1`, mandatory. */
#define WHARF_ID_MEMORY "wharf.memory"
/* `wharf_queue_v1`, mandatory. */
#define WHARF_ID_QUEUE "wharf.queue"
/* `wharf_program_v1`, of devices that run kernels. */
#define WHARF_ID_PROGRAM "wharf.program"

/* Bits of `wharf_ext.flags`. */
/* Who does not know it refuses the call with `Unsupported`; otherwise it is skipped. */
#define WHARF_EXT_FLAG_REQUIRED 1u

/* Bits of `wharf_plugin_v1.flags`. */
/* Panics or exceptions are stopped inside the plugin; without it they end the process. */
#define WHARF_PLUGIN_FLAG_CONTAINS_PANICS UINT64_C(1)
/* Built with the address sanitizer: only for a host that is too. */
#define WHARF_PLUGIN_FLAG_SANITIZER_ADDRESS UINT64_C(256)
/* Built with the thread sanitizer. */
#define WHARF_PLUGIN_FLAG_SANITIZER_THREAD UINT64_C(512)
/* Built with the memory sanitizer. */
#define WHARF_PLUGIN_FLAG_SANITIZER_MEMORY UINT64_C(1024)

/* Bits of `wharf_caps.flags`. */
/* Queues of this plugin wait for one another without the host. */
#define WHARF_CAPS_FLAG_NATIVE_WAIT UINT64_C(1)
/* Memory can be mapped. */
#define WHARF_CAPS_FLAG_MAPPABLE UINT64_C(2)
/* A mapping is a view of the memory itself. */
#define WHARF_CAPS_FLAG_COHERENT UINT64_C(4)
/* Copies reach ordinary process memory. */
#define WHARF_CAPS_FLAG_HOST_COPIES UINT64_C(8)
/* Patterns of fills are a power of two long, and their targets aligned to that. */
#define WHARF_CAPS_FLAG_PATTERN_POW2 UINT64_C(16)

/* How progress reaches a queue's value; numbers of `wharf_caps.pace`. */
/* By itself for every operation. */
#define WHARF_PACE_PUSHED 0u
/* By itself for operations with the tell flag, the rest in `poll`. */
#define WHARF_PACE_ON_REQUEST 1u
/* Only in `poll` and `wait`. */
#define WHARF_PACE_POLLED 2u

/* Kinds of `wharf_program_v1.symbol`. */
/* A kernel. */
#define WHARF_SYMBOL_KERNEL 0u
/* A global variable. */
#define WHARF_SYMBOL_GLOBAL 1u

/* Bits of `wharf_op.flags`. */
/* Somebody looks at exactly this value: `tell` when it is there. */
#define WHARF_OP_FLAG_TELL 1u
/* Keep begin and end for `times`. */
#define WHARF_OP_FLAG_STAMP 2u

/* Numbers of `hint` of `submit`. */
/* See to it that the work runs. */
#define WHARF_HINT_NONE 0u
/* More follows at once. */
#define WHARF_HINT_MORE 1u
/* `wait` for the last operation follows on this thread. */
#define WHARF_HINT_WAITING 2u

/* Numbers of the kinds of `wharf_op`. */
#define WHARF_OP_BARRIER 0u
#define WHARF_OP_COPY 1u
#define WHARF_OP_FILL 2u
#define WHARF_OP_UPDATE 3u
#define WHARF_OP_LAUNCH 4u
#define WHARF_OP_AFTER 5u
#define WHARF_OP_CALL 6u
#define WHARF_OP_READ 7u
#define WHARF_OP_WRITE 8u
#define WHARF_OP_PREFETCH 9u

/* Numbers of properties. */
#define WHARF_PROPERTY_TYPE 0u
#define WHARF_PROPERTY_PLATFORM 1u
#define WHARF_PROPERTY_NAME 2u
#define WHARF_PROPERTY_PRODUCT_NAME 3u
#define WHARF_PROPERTY_UID 4u
#define WHARF_PROPERTY_VENDOR 5u
#define WHARF_PROPERTY_DRIVER_VERSION 6u
#define WHARF_PROPERTY_MAX_WORK_GROUP_SIZE 7u
#define WHARF_PROPERTY_MAX_WORK_GROUP_SIZE_PER_DIMENSION 8u
#define WHARF_PROPERTY_MAX_WORK_SIZE 9u
#define WHARF_PROPERTY_MAX_WORK_SIZE_PER_DIMENSION 10u
#define WHARF_PROPERTY_VENDOR_ID 11u
#define WHARF_PROPERTY_NUM_COMPUTE_UNITS 12u
#define WHARF_PROPERTY_MAX_CLOCK_FREQUENCY 13u
#define WHARF_PROPERTY_MEMORY_CLOCK_RATE 14u
#define WHARF_PROPERTY_ADDRESS_BITS 15u
#define WHARF_PROPERTY_MAX_MEM_ALLOC_SIZE 16u
#define WHARF_PROPERTY_GLOBAL_MEM_SIZE 17u
#define WHARF_PROPERTY_WORK_GROUP_LOCAL_MEM_SIZE 18u
#define WHARF_PROPERTY_SINGLE_FP_CONFIG 19u
#define WHARF_PROPERTY_DOUBLE_FP_CONFIG 20u
#define WHARF_PROPERTY_HALF_FP_CONFIG 21u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_CHAR 22u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_SHORT 23u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_INT 24u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_LONG 25u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_FLOAT 26u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_DOUBLE 27u
#define WHARF_PROPERTY_NATIVE_VECTOR_WIDTH_HALF 28u
#define WHARF_PROPERTY_SINGLE_FP_SUPPORT 29u
#define WHARF_PROPERTY_DOUBLE_FP_SUPPORT 30u
#define WHARF_PROPERTY_HALF_FP_SUPPORT 31u
/* Bytes that can be allocated now, u64, never above `GLOBAL_MEM_SIZE`. */
#define WHARF_PROPERTY_MEMORY_FREE 256u
/* How `MEMORY_FREE` was found, or why it is not known; text. */
#define WHARF_PROPERTY_MEMORY_NOTE 257u
/* "host", "unified" or "dedicated"; text. */
#define WHARF_PROPERTY_MEMORY_KIND 258u

/* What a caller can act on. The numbers are stable: they cross the ABI and only grow.
   `status` and `ol_code` give the numbers of the two systems whose callers Wharf serves. */
/* An argument is outside what the call takes. */
#define WHARF_KIND_INVALID_ARGUMENT 1u
/* A handle is null, stale, of another kind or of another runtime. */
#define WHARF_KIND_INVALID_HANDLE 2u
/* A range ends past what it lies in. */
#define WHARF_KIND_OUT_OF_RANGE 3u
/* A value is not one of a listed set. */
#define WHARF_KIND_INVALID_ENUMERATION 4u
/* A name or address is not known. */
#define WHARF_KIND_NOT_FOUND 5u
/* The name or range is taken. */
#define WHARF_KIND_ALREADY_EXISTS 6u
/* Memory type, access or usage does not allow the operation. */
#define WHARF_KIND_PERMISSION_DENIED 7u
/* Memory, slots or another limited thing are used up. */
#define WHARF_KIND_RESOURCE_EXHAUSTED 8u
/* The object is in a state that does not allow the operation. */
#define WHARF_KIND_FAILED_PRECONDITION 9u
/* Somebody cancelled the operation or destroyed what it waits for. */
#define WHARF_KIND_CANCELLED 10u
/* A deadline passed first. */
#define WHARF_KIND_DEADLINE_EXCEEDED 11u
/* This backend can never do it. */
#define WHARF_KIND_UNSUPPORTED 12u
/* A driver or plugin is not there. */
#define WHARF_KIND_UNAVAILABLE 13u
/* An image is of another format or architecture. */
#define WHARF_KIND_INVALID_IMAGE 14u
/* A symbol is there but of another kind. */
#define WHARF_KIND_SYMBOL_KIND 15u
/* The device is gone; nothing on it can be trusted. */
#define WHARF_KIND_DEVICE_LOST 16u
/* A backend or its driver failed; `native` holds its own code. */
#define WHARF_KIND_BACKEND_FAILURE 17u
/* Stored bytes are not what they must be. */
#define WHARF_KIND_DATA_LOSS 18u
/* Reading or writing a file failed; `native` holds the system's code. */
#define WHARF_KIND_IO 19u
/* A bug of Wharf. */
#define WHARF_KIND_INTERNAL 20u
/* A queue of another device, or a device that is not there. */
#define WHARF_KIND_INVALID_DEVICE 21u
/* A panic was stopped inside a plugin. */
#define WHARF_KIND_PANICKED 22u

/* Who broke the contract. */
/* The caller of Wharf. */
#define WHARF_BLAME_CALLER 0u
/* A backend or plugin. */
#define WHARF_BLAME_BACKEND 1u
/* The driver under a backend. */
#define WHARF_BLAME_DRIVER 2u
/* Wharf itself, or what it runs on. */
#define WHARF_BLAME_WHARF 3u

/* Where memory lies and who can see it. */
/* Short-lived; may come from a pool. */
#define WHARF_MEMORY_TYPE_TRANSIENT 1u
/* The host can map it. */
#define WHARF_MEMORY_TYPE_HOST_VISIBLE 2u
/* The host sees device writes, and the device host writes, without flush or invalidate. */
#define WHARF_MEMORY_TYPE_HOST_COHERENT 4u
/* Host reads go through the cache. */
#define WHARF_MEMORY_TYPE_HOST_CACHED 8u
/* Lies with the host; visible and coherent. */
#define WHARF_MEMORY_TYPE_HOST_LOCAL 6u
/* The device can use it. */
#define WHARF_MEMORY_TYPE_DEVICE_VISIBLE 16u
/* Lies with the device. */
#define WHARF_MEMORY_TYPE_DEVICE_LOCAL 48u

/* What may be done with a buffer's bytes. */
/* May be read. */
#define WHARF_ACCESS_READ 1u
/* May be written. */
#define WHARF_ACCESS_WRITE 2u
/* Contents may be thrown away first. */
#define WHARF_ACCESS_DISCARD 4u
/* Written whole, nothing kept. */
#define WHARF_ACCESS_DISCARD_WRITE 6u
/* May overlap other live ranges. */
#define WHARF_ACCESS_MAY_ALIAS 8u
/* In a request: any access will do. */
#define WHARF_ACCESS_ANY 16u
/* Read, write and discard. */
#define WHARF_ACCESS_ALL 7u

/* What a buffer is used for. */
/* Constant while kernels run. */
#define WHARF_USAGE_CONSTANT 1u
/* Source or target of transfers. */
#define WHARF_USAGE_TRANSFER 2u
/* Mapped by the host. */
#define WHARF_USAGE_MAPPING 4u
/* Used by kernels. */
#define WHARF_USAGE_DISPATCH 8u
/* Transfers, mapping and kernels. */
#define WHARF_USAGE_ALL 14u

#ifdef __cplusplus
extern "C" {
#endif
/* What every table begins with. */
typedef struct wharf_head {
  /* Bytes of the table as its maker knows it. */
  uint32_t struct_size;
  /* Major version of the ABI. */
  uint16_t major;
  /* Minor version that the maker was built with. */
  uint16_t minor;
} wharf_head;

/* Borrowed UTF-8 text, not terminated; for the call, or for the plugin's life where a table says so. */
typedef struct wharf_str {
  /* First byte; any value if `len` is 0. */
  const uint8_t *ptr;
  /* Bytes. */
  uint64_t len;
} wharf_str;

/* What a call answers.
   `code` is 0 for success. Otherwise its low byte is a number of `Kind` (an unknown one
   reads as `BackendFailure`) and its second byte one of `Blame`; the other bytes are 0. */
typedef struct wharf_status {
  /* 0, or kind and blame. */
  int32_t code;
  /* Code of the driver or the system, 0 none. */
  uint32_t native;
  /* Key of a text in the plugin's error store, 0 none. The receiver fetches it with `error_text` and gives it up
     with `error_drop`. A success may carry one: `list` says so why there is no device. */
  uint64_t err;
} wharf_status;

/* A link of an extension chain. The body follows the head in memory. */
typedef struct wharf_ext {
  /* What it is. */
  uint32_t kind;
  /* Bytes, head included. */
  uint32_t size;
  /* Bits of `ext_flag`. */
  uint32_t flags;
  /* 0. */
  uint32_t reserved;
  /* The next link or NULL; really `*const Ext`, but the type check knows no recursive types. */
  const void *next;
} wharf_ext;

/* Memory that a device gave out. */
typedef struct wharf_block {
  /* First address, in the address space the device's caps name. */
  uint64_t base;
  /* Bytes. */
  uint64_t len;
  /* The plugin's own word. */
  uint64_t native;
} wharf_block;

/* One parameter of a kernel. */
typedef struct wharf_param {
  /* Bytes from the start of the packed arguments. */
  uint32_t offset;
  /* Bytes. */
  uint32_t size;
  /* Alignment in bytes. */
  uint32_t align;
  /* 0. */
  uint32_t flags;
} wharf_param;

/* What a host offers. Lives at least until `close` has returned. */
typedef struct wharf_host_v1 {
  /* Size and version. */
  wharf_head head;
  /* After a queue's value was raised for an operation with the tell flag. Any thread, also inside `submit`; takes
     no lock. `cookie` is `wharf_queue_args.cookie`. */
  void (*tell)(void *cookie);
  /* The queue is over: no value still ahead will be reached. The first call counts. `why.err` is fetched inside. */
  void (*fail)(void *cookie, wharf_status why);
  /* A line for the host's log; level 1 error, 2 warning, 3 information, 4 debug, 5 trace. */
  void (*log)(int32_t level, wharf_str target, wharf_str text);
  /* A further table of the host by name and major; `NotFound` if it has none. */
  wharf_status (*query)(wharf_str id, uint32_t major, const void **table);
} wharf_host_v1;

/* Texts of a plugin, for its whole life. */
typedef struct wharf_names {
  /* Short and stable: lower-case letters, digits, `_`, `-` and `.`; what a user types. */
  wharf_str id;
  /* Who made it. */
  wharf_str vendor;
  /* Its own version. */
  wharf_str version;
  /* Anything that tells builds apart; may be empty. */
  wharf_str build;
} wharf_names;

/* What a plugin is. All functions but `close` are mandatory. */
typedef struct wharf_plugin_v1 {
  /* `MAGIC`. */
  uint8_t magic[8];
  /* Size and version. */
  wharf_head head;
  /* Least minor version of a host that it works with. */
  uint16_t min_host_minor;
  /* `DRAFT` that it was built with. */
  uint16_t draft;
  /* 0. */
  uint32_t reserved;
  /* Bits of `plugin_flag`. */
  uint64_t flags;
  /* Its names. */
  wharf_names names;
  /* Begins. `host` lives until `close` has returned. A second call before that is `FailedPrecondition`. */
  wharf_status (*open)(const wharf_host_v1 *host, const wharf_ext *config);
  /* Ends: devices that are left answer `FailedPrecondition` from here on. */
  wharf_status (*close)(void);
  /* A table by name and major, for the plugin's whole life; `NotFound` if it has none. Good before `open`. */
  wharf_status (*query)(wharf_str id, uint32_t major, const void **table);
  /* Writes at most `cap` bytes of the text to `buf` and its whole length to `len`. `NotFound` once it was dropped
     or pushed out by newer ones. */
  wharf_status (*error_text)(uint64_t err, uint8_t *buf, uint64_t cap, uint64_t *len);
  /* The text is no longer needed. */
  void (*error_drop)(uint64_t err);
} wharf_plugin_v1;

/* What a device is and takes. */
typedef struct wharf_caps {
  /* Bytes of this struct. */
  uint32_t struct_size;
  /* Address space of device memory: 0 the process', else the plugin's own number. */
  uint32_t space;
  /* Bit n: operations of kind n are taken. */
  uint64_t ops;
  /* Bits of `caps_flag`. */
  uint64_t flags;
  /* One of `pace`. */
  uint32_t pace;
  /* With `pace::POLLED`: nanoseconds between two looks. */
  uint32_t poll_ns;
  /* Unfinished operations a queue takes at least, 1 or more. */
  uint32_t depth;
  /* Queues at once. */
  uint32_t lanes;
  /* Alignment of allocations, a power of two. */
  uint32_t align;
  /* Most bytes of kernel arguments. */
  uint32_t args_max;
  /* Most work-items in a group. */
  uint32_t group_max;
  /* Most bytes of dynamic shared memory of a group. */
  uint32_t shared_max;
  /* Longest pattern of a fill, 1 or more if fills are taken. */
  uint32_t pattern_max;
  /* Most bytes of an update, 1 or more if updates are taken. */
  uint32_t update_max;
  /* Most bytes of an allocation; all ones where that is not known. */
  uint64_t alloc_max;
} wharf_caps;

/* A wish for memory. */
typedef struct wharf_alloc {
  /* Bytes of this struct. */
  uint32_t struct_size;
  /* Bits of memory type. */
  uint32_t kind;
  /* Bytes, 1 or more. */
  uint64_t len;
  /* Least alignment, a power of two; 0 leaves it to the plugin. */
  uint64_t align;
  /* Bits of access. */
  uint32_t access;
  /* Bits of usage. */
  uint32_t usage;
  /* Extension chain or NULL. */
  const wharf_ext *next;
} wharf_alloc;

/* Memory as the system names it: a file descriptor, a dma-buf. Reserved: no kind is defined yet. */
typedef struct wharf_foreign {
  /* Bytes of this struct. */
  uint32_t struct_size;
  /* What `handle` is. */
  uint32_t kind;
  /* The system's word. */
  uint64_t handle;
  /* Bytes into it. */
  uint64_t offset;
  /* Bytes. */
  uint64_t len;
  /* Bits of access. */
  uint32_t access;
  /* 0. */
  uint32_t flags;
  /* Extension chain or NULL. */
  const wharf_ext *next;
} wharf_foreign;

/* A kernel. The caller has set `struct_size`. */
typedef struct wharf_kernel {
  /* Bytes of this struct. */
  uint32_t struct_size;
  /* Number of parameters, 0 if the image does not tell. */
  uint32_t params;
  /* The plugin's word, for launches. */
  uint64_t native;
  /* Bytes of the packed arguments, `u32::MAX` if the image does not tell. */
  uint32_t args_len;
  /* Most work-items in a group. */
  uint32_t group_max;
  /* Bytes of shared memory of a group beside the dynamic part. */
  uint32_t shared_static;
  /* 0. */
  uint32_t flags;
} wharf_kernel;

/* How to make a queue. */
typedef struct wharf_queue_args {
  /* Bytes of this struct. */
  uint32_t struct_size;
  /* 0. */
  uint32_t flags;
  /* 0 ordinary, above is more urgent. */
  int32_t priority;
  /* 0. */
  uint32_t reserved;
  /* Raised with a release store, by one thread at a time, never down; then `tell` for operations that ask. */
  uint64_t *value;
  /* For `tell` and `fail`. */
  void *cookie;
  /* Extension chain or NULL. */
  const wharf_ext *next;
} wharf_queue_args;

/* `len` bytes from address to address; handles of the devices that hold them, 0 process memory. */
typedef struct wharf_copy_args {
  uint64_t from;
  uint64_t to;
  uint64_t len;
  uint64_t from_device;
  uint64_t to_device;
} wharf_copy_args;

/* `pattern` again and again over `len` bytes. */
typedef struct wharf_fill_args {
  uint64_t to;
  uint64_t len;
  const uint8_t *pattern;
  uint64_t pattern_len;
} wharf_fill_args;

/* Bytes captured during `submit`. */
typedef struct wharf_update_args {
  uint64_t to;
  uint64_t len;
  const uint8_t *bytes;
} wharf_update_args;

/* A kernel over a grid of groups. */
typedef struct wharf_launch_args {
  uint64_t kernel;
  uint32_t groups[3];
  uint32_t size[3];
  uint32_t shared;
  uint32_t args_len;
  const uint8_t *args;
} wharf_launch_args;

/* Wait until another queue of this plugin shows `value`. */
typedef struct wharf_after_args {
  uint64_t queue;
  uint64_t value;
} wharf_after_args;

/* A host function, in order. */
typedef struct wharf_call_args {
  void (*call)(void *user);
  void *user;
} wharf_call_args;

/* Between a file of the plugin and memory. */
typedef struct wharf_file_args {
  uint64_t file;
  uint64_t at;
  uint64_t address;
  uint64_t len;
} wharf_file_args;

/* Move managed memory towards the device, or the host if `to_host` is not 0. */
typedef struct wharf_prefetch_args {
  uint64_t at;
  uint64_t len;
  uint64_t to_host;
} wharf_prefetch_args;

/* Devices. `property` and `peer` may be NULL. */
typedef struct wharf_device_v1 {
  /* Size and version. */
  wharf_head head;
  /* Writes at most `cap` handles and the number of devices. Always the same between `open` and `close`. No driver
     is no error: the count is 0, the code is 0, and `err` of the status may hold the reason. */
  wharf_status (*list)(uint64_t *devices, uint32_t cap, uint32_t *count);
  /* Before the first use of a device, except for `caps`, `property` and `accepts`. Again is no error. */
  wharf_status (*start)(uint64_t device);
  /* After the last use; `start` may follow. */
  wharf_status (*stop)(uint64_t device);
  /* What the device is and takes; always the same. The caller has set `struct_size`. */
  wharf_status (*caps)(uint64_t device, wharf_caps *out);
  /* Writes at most `cap` bytes of a property and its whole length; `NotFound` without a text if it has none. */
  wharf_status (*property)(uint64_t device, uint32_t id, uint8_t *buf, uint64_t cap, uint64_t *len);
  /* Whether copies from one device to another go without the host. */
  wharf_status (*peer)(uint64_t from, uint64_t to, uint32_t *can);
} wharf_device_v1;

/* Memory. All but `allocate` and `free` may be NULL. */
typedef struct wharf_memory_v1 {
  /* Size and version. */
  wharf_head head;
  /* Memory of `len` bytes or more. */
  wharf_status (*allocate)(uint64_t device, const wharf_alloc *want, wharf_block *out);
  /* Gives memory back; on error the block is as it was. */
  wharf_status (*free)(uint64_t device, const wharf_block *block);
  /* A host address of a part of the block. */
  wharf_status (*map)(uint64_t device, const wharf_block *block, uint64_t offset, uint64_t len, uint32_t access, void **host);
  /* Ends a mapping. */
  wharf_status (*unmap)(uint64_t device, const wharf_block *block, uint64_t offset, uint64_t len);
  /* Makes host writes visible to the device. */
  wharf_status (*flush)(uint64_t device, const wharf_block *block, uint64_t offset, uint64_t len);
  /* Makes device writes visible to the host. */
  wharf_status (*invalidate)(uint64_t device, const wharf_block *block, uint64_t offset, uint64_t len);
  /* Shows host memory to the device. */
  wharf_status (*register_host)(uint64_t device, void *host, uint64_t len, uint32_t access, wharf_block *out);
  /* Ends a registration. */
  wharf_status (*unregister_host)(uint64_t device, const wharf_block *block);
  /* Memory that another part of the system made. */
  wharf_status (*import_)(uint64_t device, const wharf_foreign *from, wharf_block *out);
  /* Memory for another part of the system. */
  wharf_status (*export_)(uint64_t device, const wharf_block *block, uint32_t kind, wharf_foreign *out);
} wharf_memory_v1;

/* Programs. All but `load`, `unload` and `kernel` may be NULL. */
typedef struct wharf_program_v1 {
  /* Size and version. */
  wharf_head head;
  /* Whether `load` would take the image; good before `start`. `InvalidImage` without a text: no. */
  wharf_status (*accepts)(uint64_t device, const void *image, uint64_t len);
  /* Loads an image; nothing of it is kept borrowed. */
  wharf_status (*load)(uint64_t device, const void *image, uint64_t len, const wharf_ext *next, uint64_t *program);
  /* Drops a program and its kernels. */
  wharf_status (*unload)(uint64_t device, uint64_t program);
  /* A kernel by name. `layout`: the caller's idea of the parameters, none if `count` is 0. */
  wharf_status (*kernel)(uint64_t device, uint64_t program, wharf_str name, const wharf_param *layout, uint32_t count, wharf_kernel *out);
  /* Address and size of a global by name. */
  wharf_status (*global)(uint64_t device, uint64_t program, wharf_str name, wharf_block *out);
  /* Name, whole length of the name and kind (`symbol`) of symbol `index`; `NotFound` without a text past the last. */
  wharf_status (*symbol)(uint64_t device, uint64_t program, uint32_t index, uint8_t *buf, uint64_t cap, uint64_t *len, uint32_t *kind);
  /* Parameters of a kernel, as many as fit, and how many there are. */
  wharf_status (*params)(uint64_t device, uint64_t kernel, wharf_param *out, uint32_t cap, uint32_t *count);
  /* Work-items in a group that use the device best with so much dynamic shared memory. */
  wharf_status (*occupancy)(uint64_t device, uint64_t kernel, uint64_t shared, uint32_t *items);
} wharf_program_v1;

/* Arguments of an operation, by its kind. */
typedef union wharf_op_args {
  /* Room for kinds to come. */
  uint64_t words[10];
  /* Copy. */
  wharf_copy_args copy;
  /* Fill. */
  wharf_fill_args fill;
  /* Update. */
  wharf_update_args update;
  /* Launch. */
  wharf_launch_args launch;
  /* After. */
  wharf_after_args after;
  /* Call. */
  wharf_call_args call;
  /* Read and write. */
  wharf_file_args file;
  /* Prefetch. */
  wharf_prefetch_args prefetch;
} wharf_op_args;

/* One operation. */
typedef struct wharf_op {
  /* Number of the kind, as in `op`. */
  uint16_t kind;
  /* Bits of `op_flag`. */
  uint16_t flags;
  /* 0. */
  uint32_t reserved;
  /* What the queue's value shows once this and all before has ended; 0 nothing. */
  uint64_t done;
  /* Extension chain or NULL. */
  const wharf_ext *next;
  /* By kind. */
  wharf_op_args args;
} wharf_op;

/* Queues. `wait`, `times` and `cancel` may be NULL. */
typedef struct wharf_queue_v1 {
  /* Size and version. */
  wharf_head head;
  /* A queue of the device. */
  wharf_status (*create)(uint64_t device, const wharf_queue_args *args, uint64_t *queue);
  /* Ends a queue whose work has ended or that has failed. No `tell` or `fail` of it after the return. */
  wharf_status (*destroy)(uint64_t queue);
  /* Takes a prefix of `count` operations that lie `stride` bytes apart, and says how long it was in `taken`, on
     error too: then the operation behind the prefix was refused. Fewer than all with success: the queue is full.
     What operations point to is captured before the return. Never waits for the device, never runs work. */
  wharf_status (*submit)(uint64_t queue, const wharf_op *ops, uint32_t count, uint32_t stride, uint32_t hint, uint32_t *taken);
  /* Brings the value up to date. */
  wharf_status (*poll)(uint64_t queue);
  /* Sleeps, or runs the queue's next work, until `value` is reached, the queue failed or the deadline passed (all
     success). `Unsupported` without a text: sleep elsewhere. `deadline_ns`: on the host's monotonic clock (the
     system's, where it has one: `CLOCK_MONOTONIC`); `u64::MAX` never. */
  wharf_status (*wait)(uint64_t queue, uint64_t value, uint64_t deadline_ns);
  /* When the stamped operation that ended as `value` began and ended; `NotFound` without a text if not kept. */
  wharf_status (*times)(uint64_t queue, uint64_t value, uint64_t *begin_ns, uint64_t *end_ns);
  /* Ends work that has not begun. Reserved. */
  wharf_status (*cancel)(uint64_t queue);
} wharf_queue_v1;

/* The entry: NULL refuses this host. */
WHARF_EXPORT const wharf_plugin_v1 *wharf_plugin_entry_v1(uint32_t host_major, uint32_t host_minor);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* The magic as the field of the descriptor takes it. */
#define WHARF_ABI_MAGIC_BYTES {'W', 'H', 'A', 'R', 'F', 'P', 'L', '1'}

/* A code: kind and who broke the contract (WHARF_BLAME_*). */
#define WHARF_CODE(kind, blame) ((int32_t)((kind) | (blame) << 8))

static inline wharf_status wharf_ok(void) {
  wharf_status status = {0, 0, 0};
  return status;
}

/* A failure without words. */
static inline wharf_status wharf_failed(uint32_t kind, uint32_t blame) {
  wharf_status status = {0, 0, 0};
  status.code = WHARF_CODE(kind, blame);
  return status;
}

static inline wharf_str wharf_text(const char *bytes, uint64_t len) {
  wharf_str text;
  text.ptr = (const uint8_t *)bytes;
  text.len = len;
  return text;
}

/* The text of a literal. */
#define WHARF_TEXT(literal) wharf_text("" literal, sizeof(literal) - 1)

/* Whether a text is this literal. */
#define WHARF_IS(text, literal) wharf_is((text), "" literal, sizeof(literal) - 1)
static inline int wharf_is(wharf_str text, const char *bytes, uint64_t len) {
  uint64_t i;
  if (text.len != len) return 0;
  for (i = 0; i < len; i++)
    if (text.ptr[i] != (uint8_t)bytes[i]) return 0;
  return 1;
}

/* Raises a queue's value: everything up to it has ended. One thread at a time, never down. Call `tell` of the host after
 * it for operations with WHARF_OP_FLAG_TELL. */
static inline void wharf_raise(uint64_t *value, uint64_t to) {
#if defined(__GNUC__) || defined(__clang__)
  __atomic_store_n(value, to, __ATOMIC_RELEASE);
#elif defined(_MSC_VER)
  *(volatile uint64_t *)value = to; /* a release store on x86-64 and, by /volatile:ms, elsewhere */
#else
#error "no release store is known for this compiler"
#endif
}

#ifdef __cplusplus
/* Around the body of every function of a table that is written in C++: no exception leaves a plugin.
 *
 *   static wharf_status start(uint64_t device) WHARF_GUARD({ ...; return wharf_ok(); })
 */
#define WHARF_GUARD(...)                                            \
  {                                                                 \
    try __VA_ARGS__ catch (...) {                                   \
      return wharf_failed(WHARF_KIND_PANICKED, WHARF_BLAME_BACKEND); \
    }                                                               \
  }
#else
/* What the compiler was told to check at run time. */
#if defined(__has_feature)
#define WHARF_HAS_FEATURE(feature) __has_feature(feature)
#else
#define WHARF_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || WHARF_HAS_FEATURE(address_sanitizer)
#define WHARF_SANITIZER WHARF_PLUGIN_FLAG_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__) || WHARF_HAS_FEATURE(thread_sanitizer)
#define WHARF_SANITIZER WHARF_PLUGIN_FLAG_SANITIZER_THREAD
#elif WHARF_HAS_FEATURE(memory_sanitizer)
#define WHARF_SANITIZER WHARF_PLUGIN_FLAG_SANITIZER_MEMORY
#else
#define WHARF_SANITIZER 0
#endif

/* The fields of the record that every plugin has. */
#define WHARF_META_FIELDS(id_, vendor_, version_)                \
  char magic[8];                                                 \
  uint32_t len;                                                  \
  uint16_t id_tag, id_len;                                       \
  char id[sizeof(id_) - 1];                                      \
  uint16_t vendor_tag, vendor_len;                               \
  char vendor[sizeof(vendor_) - 1];                              \
  uint16_t version_tag, version_len;                             \
  char version[sizeof(version_) - 1];                            \
  uint16_t abi_tag, abi_len, major, minor, draft, min_host_minor; \
  uint16_t flags_tag, flags_len;                                 \
  uint64_t flags;
#define WHARF_META_VALUES(id_, vendor_, version_, flags_)     \
  "WHARFMD1", sizeof(wharf_plugin_meta),                      \
  1, sizeof(id_) - 1, id_,                                    \
  2, sizeof(vendor_) - 1, vendor_,                            \
  3, sizeof(version_) - 1, version_,                          \
  4, 8, WHARF_ABI_MAJOR, WHARF_ABI_MINOR, WHARF_ABI_DRAFT, 0, \
  5, 8, (flags_) | WHARF_SANITIZER
#define WHARF_META_RECORD __attribute__((section(".wharf.plugin"), used)) static const struct __attribute__((packed))

/* The record that says what the plugin is without being run; once, in one C file, with literals of at most 256 bytes.
 * `id`: 1 to 64 of a-z 0-9 _ - and dot. `flags`: WHARF_PLUGIN_FLAG_*; C throws nothing, so a plugin in C contains panics. */
#define WHARF_PLUGIN_META(id_, vendor_, version_, flags_)                    \
  WHARF_META_RECORD { WHARF_META_FIELDS(id_, vendor_, version_) } wharf_plugin_meta = { \
      WHARF_META_VALUES(id_, vendor_, version_, flags_)}

/* The same with what need not be said; " " where there is nothing to say. `backend`: what its devices belong to, if not
 * what the id says. `cpu`: what the processor must have, as "avx2,fma". */
#define WHARF_PLUGIN_META_MORE(id_, vendor_, version_, flags_, backend_, cpu_, licence_) \
  WHARF_META_RECORD {                                                                    \
    WHARF_META_FIELDS(id_, vendor_, version_)                                            \
    uint16_t backend_tag, backend_len;                                                   \
    char backend[sizeof(backend_) - 1];                                                  \
    uint16_t cpu_tag, cpu_len;                                                           \
    char cpu[sizeof(cpu_) - 1];                                                          \
    uint16_t licence_tag, licence_len;                                                   \
    char licence[sizeof(licence_) - 1];                                                  \
  } wharf_plugin_meta = {                                                                \
      WHARF_META_VALUES(id_, vendor_, version_, flags_),                                 \
      6, sizeof(backend_) - 1, backend_,                                                 \
      7, sizeof(cpu_) - 1, cpu_,                                                         \
      8, sizeof(licence_) - 1, licence_}
#endif
/* Offsets as Rust has them. */
WHARF_ASSERT(sizeof(wharf_head) == 8, "size of wharf_head");
WHARF_ASSERT(offsetof(wharf_head, struct_size) == 0, "wharf_head.struct_size");
WHARF_ASSERT(offsetof(wharf_head, major) == 4, "wharf_head.major");
WHARF_ASSERT(offsetof(wharf_head, minor) == 6, "wharf_head.minor");
WHARF_ASSERT(sizeof(wharf_str) == 16, "size of wharf_str");
WHARF_ASSERT(offsetof(wharf_str, ptr) == 0, "wharf_str.ptr");
WHARF_ASSERT(offsetof(wharf_str, len) == 8, "wharf_str.len");
WHARF_ASSERT(sizeof(wharf_status) == 16, "size of wharf_status");
WHARF_ASSERT(offsetof(wharf_status, code) == 0, "wharf_status.code");
WHARF_ASSERT(offsetof(wharf_status, native) == 4, "wharf_status.native");
WHARF_ASSERT(offsetof(wharf_status, err) == 8, "wharf_status.err");
WHARF_ASSERT(sizeof(wharf_ext) == 24, "size of wharf_ext");
WHARF_ASSERT(offsetof(wharf_ext, kind) == 0, "wharf_ext.kind");
WHARF_ASSERT(offsetof(wharf_ext, size) == 4, "wharf_ext.size");
WHARF_ASSERT(offsetof(wharf_ext, flags) == 8, "wharf_ext.flags");
WHARF_ASSERT(offsetof(wharf_ext, reserved) == 12, "wharf_ext.reserved");
WHARF_ASSERT(offsetof(wharf_ext, next) == 16, "wharf_ext.next");
WHARF_ASSERT(sizeof(wharf_block) == 24, "size of wharf_block");
WHARF_ASSERT(offsetof(wharf_block, base) == 0, "wharf_block.base");
WHARF_ASSERT(offsetof(wharf_block, len) == 8, "wharf_block.len");
WHARF_ASSERT(offsetof(wharf_block, native) == 16, "wharf_block.native");
WHARF_ASSERT(sizeof(wharf_param) == 16, "size of wharf_param");
WHARF_ASSERT(offsetof(wharf_param, offset) == 0, "wharf_param.offset");
WHARF_ASSERT(offsetof(wharf_param, size) == 4, "wharf_param.size");
WHARF_ASSERT(offsetof(wharf_param, align) == 8, "wharf_param.align");
WHARF_ASSERT(offsetof(wharf_param, flags) == 12, "wharf_param.flags");
WHARF_ASSERT(sizeof(wharf_host_v1) == 40, "size of wharf_host_v1");
WHARF_ASSERT(offsetof(wharf_host_v1, head) == 0, "wharf_host_v1.head");
WHARF_ASSERT(offsetof(wharf_host_v1, tell) == 8, "wharf_host_v1.tell");
WHARF_ASSERT(offsetof(wharf_host_v1, fail) == 16, "wharf_host_v1.fail");
WHARF_ASSERT(offsetof(wharf_host_v1, log) == 24, "wharf_host_v1.log");
WHARF_ASSERT(offsetof(wharf_host_v1, query) == 32, "wharf_host_v1.query");
WHARF_ASSERT(sizeof(wharf_names) == 64, "size of wharf_names");
WHARF_ASSERT(offsetof(wharf_names, id) == 0, "wharf_names.id");
WHARF_ASSERT(offsetof(wharf_names, vendor) == 16, "wharf_names.vendor");
WHARF_ASSERT(offsetof(wharf_names, version) == 32, "wharf_names.version");
WHARF_ASSERT(offsetof(wharf_names, build) == 48, "wharf_names.build");
WHARF_ASSERT(sizeof(wharf_plugin_v1) == 136, "size of wharf_plugin_v1");
WHARF_ASSERT(offsetof(wharf_plugin_v1, magic) == 0, "wharf_plugin_v1.magic");
WHARF_ASSERT(offsetof(wharf_plugin_v1, head) == 8, "wharf_plugin_v1.head");
WHARF_ASSERT(offsetof(wharf_plugin_v1, min_host_minor) == 16, "wharf_plugin_v1.min_host_minor");
WHARF_ASSERT(offsetof(wharf_plugin_v1, draft) == 18, "wharf_plugin_v1.draft");
WHARF_ASSERT(offsetof(wharf_plugin_v1, reserved) == 20, "wharf_plugin_v1.reserved");
WHARF_ASSERT(offsetof(wharf_plugin_v1, flags) == 24, "wharf_plugin_v1.flags");
WHARF_ASSERT(offsetof(wharf_plugin_v1, names) == 32, "wharf_plugin_v1.names");
WHARF_ASSERT(offsetof(wharf_plugin_v1, open) == 96, "wharf_plugin_v1.open");
WHARF_ASSERT(offsetof(wharf_plugin_v1, close) == 104, "wharf_plugin_v1.close");
WHARF_ASSERT(offsetof(wharf_plugin_v1, query) == 112, "wharf_plugin_v1.query");
WHARF_ASSERT(offsetof(wharf_plugin_v1, error_text) == 120, "wharf_plugin_v1.error_text");
WHARF_ASSERT(offsetof(wharf_plugin_v1, error_drop) == 128, "wharf_plugin_v1.error_drop");
WHARF_ASSERT(sizeof(wharf_device_v1) == 56, "size of wharf_device_v1");
WHARF_ASSERT(offsetof(wharf_device_v1, head) == 0, "wharf_device_v1.head");
WHARF_ASSERT(offsetof(wharf_device_v1, list) == 8, "wharf_device_v1.list");
WHARF_ASSERT(offsetof(wharf_device_v1, start) == 16, "wharf_device_v1.start");
WHARF_ASSERT(offsetof(wharf_device_v1, stop) == 24, "wharf_device_v1.stop");
WHARF_ASSERT(offsetof(wharf_device_v1, caps) == 32, "wharf_device_v1.caps");
WHARF_ASSERT(offsetof(wharf_device_v1, property) == 40, "wharf_device_v1.property");
WHARF_ASSERT(offsetof(wharf_device_v1, peer) == 48, "wharf_device_v1.peer");
WHARF_ASSERT(sizeof(wharf_caps) == 72, "size of wharf_caps");
WHARF_ASSERT(offsetof(wharf_caps, struct_size) == 0, "wharf_caps.struct_size");
WHARF_ASSERT(offsetof(wharf_caps, space) == 4, "wharf_caps.space");
WHARF_ASSERT(offsetof(wharf_caps, ops) == 8, "wharf_caps.ops");
WHARF_ASSERT(offsetof(wharf_caps, flags) == 16, "wharf_caps.flags");
WHARF_ASSERT(offsetof(wharf_caps, pace) == 24, "wharf_caps.pace");
WHARF_ASSERT(offsetof(wharf_caps, poll_ns) == 28, "wharf_caps.poll_ns");
WHARF_ASSERT(offsetof(wharf_caps, depth) == 32, "wharf_caps.depth");
WHARF_ASSERT(offsetof(wharf_caps, lanes) == 36, "wharf_caps.lanes");
WHARF_ASSERT(offsetof(wharf_caps, align) == 40, "wharf_caps.align");
WHARF_ASSERT(offsetof(wharf_caps, args_max) == 44, "wharf_caps.args_max");
WHARF_ASSERT(offsetof(wharf_caps, group_max) == 48, "wharf_caps.group_max");
WHARF_ASSERT(offsetof(wharf_caps, shared_max) == 52, "wharf_caps.shared_max");
WHARF_ASSERT(offsetof(wharf_caps, pattern_max) == 56, "wharf_caps.pattern_max");
WHARF_ASSERT(offsetof(wharf_caps, update_max) == 60, "wharf_caps.update_max");
WHARF_ASSERT(offsetof(wharf_caps, alloc_max) == 64, "wharf_caps.alloc_max");
WHARF_ASSERT(sizeof(wharf_memory_v1) == 88, "size of wharf_memory_v1");
WHARF_ASSERT(offsetof(wharf_memory_v1, head) == 0, "wharf_memory_v1.head");
WHARF_ASSERT(offsetof(wharf_memory_v1, allocate) == 8, "wharf_memory_v1.allocate");
WHARF_ASSERT(offsetof(wharf_memory_v1, free) == 16, "wharf_memory_v1.free");
WHARF_ASSERT(offsetof(wharf_memory_v1, map) == 24, "wharf_memory_v1.map");
WHARF_ASSERT(offsetof(wharf_memory_v1, unmap) == 32, "wharf_memory_v1.unmap");
WHARF_ASSERT(offsetof(wharf_memory_v1, flush) == 40, "wharf_memory_v1.flush");
WHARF_ASSERT(offsetof(wharf_memory_v1, invalidate) == 48, "wharf_memory_v1.invalidate");
WHARF_ASSERT(offsetof(wharf_memory_v1, register_host) == 56, "wharf_memory_v1.register_host");
WHARF_ASSERT(offsetof(wharf_memory_v1, unregister_host) == 64, "wharf_memory_v1.unregister_host");
WHARF_ASSERT(offsetof(wharf_memory_v1, import_) == 72, "wharf_memory_v1.import_");
WHARF_ASSERT(offsetof(wharf_memory_v1, export_) == 80, "wharf_memory_v1.export_");
WHARF_ASSERT(sizeof(wharf_alloc) == 40, "size of wharf_alloc");
WHARF_ASSERT(offsetof(wharf_alloc, struct_size) == 0, "wharf_alloc.struct_size");
WHARF_ASSERT(offsetof(wharf_alloc, kind) == 4, "wharf_alloc.kind");
WHARF_ASSERT(offsetof(wharf_alloc, len) == 8, "wharf_alloc.len");
WHARF_ASSERT(offsetof(wharf_alloc, align) == 16, "wharf_alloc.align");
WHARF_ASSERT(offsetof(wharf_alloc, access) == 24, "wharf_alloc.access");
WHARF_ASSERT(offsetof(wharf_alloc, usage) == 28, "wharf_alloc.usage");
WHARF_ASSERT(offsetof(wharf_alloc, next) == 32, "wharf_alloc.next");
WHARF_ASSERT(sizeof(wharf_foreign) == 48, "size of wharf_foreign");
WHARF_ASSERT(offsetof(wharf_foreign, struct_size) == 0, "wharf_foreign.struct_size");
WHARF_ASSERT(offsetof(wharf_foreign, kind) == 4, "wharf_foreign.kind");
WHARF_ASSERT(offsetof(wharf_foreign, handle) == 8, "wharf_foreign.handle");
WHARF_ASSERT(offsetof(wharf_foreign, offset) == 16, "wharf_foreign.offset");
WHARF_ASSERT(offsetof(wharf_foreign, len) == 24, "wharf_foreign.len");
WHARF_ASSERT(offsetof(wharf_foreign, access) == 32, "wharf_foreign.access");
WHARF_ASSERT(offsetof(wharf_foreign, flags) == 36, "wharf_foreign.flags");
WHARF_ASSERT(offsetof(wharf_foreign, next) == 40, "wharf_foreign.next");
WHARF_ASSERT(sizeof(wharf_program_v1) == 72, "size of wharf_program_v1");
WHARF_ASSERT(offsetof(wharf_program_v1, head) == 0, "wharf_program_v1.head");
WHARF_ASSERT(offsetof(wharf_program_v1, accepts) == 8, "wharf_program_v1.accepts");
WHARF_ASSERT(offsetof(wharf_program_v1, load) == 16, "wharf_program_v1.load");
WHARF_ASSERT(offsetof(wharf_program_v1, unload) == 24, "wharf_program_v1.unload");
WHARF_ASSERT(offsetof(wharf_program_v1, kernel) == 32, "wharf_program_v1.kernel");
WHARF_ASSERT(offsetof(wharf_program_v1, global) == 40, "wharf_program_v1.global");
WHARF_ASSERT(offsetof(wharf_program_v1, symbol) == 48, "wharf_program_v1.symbol");
WHARF_ASSERT(offsetof(wharf_program_v1, params) == 56, "wharf_program_v1.params");
WHARF_ASSERT(offsetof(wharf_program_v1, occupancy) == 64, "wharf_program_v1.occupancy");
WHARF_ASSERT(sizeof(wharf_kernel) == 32, "size of wharf_kernel");
WHARF_ASSERT(offsetof(wharf_kernel, struct_size) == 0, "wharf_kernel.struct_size");
WHARF_ASSERT(offsetof(wharf_kernel, params) == 4, "wharf_kernel.params");
WHARF_ASSERT(offsetof(wharf_kernel, native) == 8, "wharf_kernel.native");
WHARF_ASSERT(offsetof(wharf_kernel, args_len) == 16, "wharf_kernel.args_len");
WHARF_ASSERT(offsetof(wharf_kernel, group_max) == 20, "wharf_kernel.group_max");
WHARF_ASSERT(offsetof(wharf_kernel, shared_static) == 24, "wharf_kernel.shared_static");
WHARF_ASSERT(offsetof(wharf_kernel, flags) == 28, "wharf_kernel.flags");
WHARF_ASSERT(sizeof(wharf_queue_v1) == 64, "size of wharf_queue_v1");
WHARF_ASSERT(offsetof(wharf_queue_v1, head) == 0, "wharf_queue_v1.head");
WHARF_ASSERT(offsetof(wharf_queue_v1, create) == 8, "wharf_queue_v1.create");
WHARF_ASSERT(offsetof(wharf_queue_v1, destroy) == 16, "wharf_queue_v1.destroy");
WHARF_ASSERT(offsetof(wharf_queue_v1, submit) == 24, "wharf_queue_v1.submit");
WHARF_ASSERT(offsetof(wharf_queue_v1, poll) == 32, "wharf_queue_v1.poll");
WHARF_ASSERT(offsetof(wharf_queue_v1, wait) == 40, "wharf_queue_v1.wait");
WHARF_ASSERT(offsetof(wharf_queue_v1, times) == 48, "wharf_queue_v1.times");
WHARF_ASSERT(offsetof(wharf_queue_v1, cancel) == 56, "wharf_queue_v1.cancel");
WHARF_ASSERT(sizeof(wharf_queue_args) == 40, "size of wharf_queue_args");
WHARF_ASSERT(offsetof(wharf_queue_args, struct_size) == 0, "wharf_queue_args.struct_size");
WHARF_ASSERT(offsetof(wharf_queue_args, flags) == 4, "wharf_queue_args.flags");
WHARF_ASSERT(offsetof(wharf_queue_args, priority) == 8, "wharf_queue_args.priority");
WHARF_ASSERT(offsetof(wharf_queue_args, reserved) == 12, "wharf_queue_args.reserved");
WHARF_ASSERT(offsetof(wharf_queue_args, value) == 16, "wharf_queue_args.value");
WHARF_ASSERT(offsetof(wharf_queue_args, cookie) == 24, "wharf_queue_args.cookie");
WHARF_ASSERT(offsetof(wharf_queue_args, next) == 32, "wharf_queue_args.next");
WHARF_ASSERT(sizeof(wharf_op) == 104, "size of wharf_op");
WHARF_ASSERT(offsetof(wharf_op, kind) == 0, "wharf_op.kind");
WHARF_ASSERT(offsetof(wharf_op, flags) == 2, "wharf_op.flags");
WHARF_ASSERT(offsetof(wharf_op, reserved) == 4, "wharf_op.reserved");
WHARF_ASSERT(offsetof(wharf_op, done) == 8, "wharf_op.done");
WHARF_ASSERT(offsetof(wharf_op, next) == 16, "wharf_op.next");
WHARF_ASSERT(offsetof(wharf_op, args) == 24, "wharf_op.args");
WHARF_ASSERT(sizeof(wharf_op_args) == 80, "size of wharf_op_args");
WHARF_ASSERT(offsetof(wharf_op_args, words) == 0, "wharf_op_args.words");
WHARF_ASSERT(offsetof(wharf_op_args, copy) == 0, "wharf_op_args.copy");
WHARF_ASSERT(offsetof(wharf_op_args, fill) == 0, "wharf_op_args.fill");
WHARF_ASSERT(offsetof(wharf_op_args, update) == 0, "wharf_op_args.update");
WHARF_ASSERT(offsetof(wharf_op_args, launch) == 0, "wharf_op_args.launch");
WHARF_ASSERT(offsetof(wharf_op_args, after) == 0, "wharf_op_args.after");
WHARF_ASSERT(offsetof(wharf_op_args, call) == 0, "wharf_op_args.call");
WHARF_ASSERT(offsetof(wharf_op_args, file) == 0, "wharf_op_args.file");
WHARF_ASSERT(offsetof(wharf_op_args, prefetch) == 0, "wharf_op_args.prefetch");
WHARF_ASSERT(sizeof(wharf_copy_args) == 40, "size of wharf_copy_args");
WHARF_ASSERT(offsetof(wharf_copy_args, from) == 0, "wharf_copy_args.from");
WHARF_ASSERT(offsetof(wharf_copy_args, to) == 8, "wharf_copy_args.to");
WHARF_ASSERT(offsetof(wharf_copy_args, len) == 16, "wharf_copy_args.len");
WHARF_ASSERT(offsetof(wharf_copy_args, from_device) == 24, "wharf_copy_args.from_device");
WHARF_ASSERT(offsetof(wharf_copy_args, to_device) == 32, "wharf_copy_args.to_device");
WHARF_ASSERT(sizeof(wharf_fill_args) == 32, "size of wharf_fill_args");
WHARF_ASSERT(offsetof(wharf_fill_args, to) == 0, "wharf_fill_args.to");
WHARF_ASSERT(offsetof(wharf_fill_args, len) == 8, "wharf_fill_args.len");
WHARF_ASSERT(offsetof(wharf_fill_args, pattern) == 16, "wharf_fill_args.pattern");
WHARF_ASSERT(offsetof(wharf_fill_args, pattern_len) == 24, "wharf_fill_args.pattern_len");
WHARF_ASSERT(sizeof(wharf_update_args) == 24, "size of wharf_update_args");
WHARF_ASSERT(offsetof(wharf_update_args, to) == 0, "wharf_update_args.to");
WHARF_ASSERT(offsetof(wharf_update_args, len) == 8, "wharf_update_args.len");
WHARF_ASSERT(offsetof(wharf_update_args, bytes) == 16, "wharf_update_args.bytes");
WHARF_ASSERT(sizeof(wharf_launch_args) == 48, "size of wharf_launch_args");
WHARF_ASSERT(offsetof(wharf_launch_args, kernel) == 0, "wharf_launch_args.kernel");
WHARF_ASSERT(offsetof(wharf_launch_args, groups) == 8, "wharf_launch_args.groups");
WHARF_ASSERT(offsetof(wharf_launch_args, size) == 20, "wharf_launch_args.size");
WHARF_ASSERT(offsetof(wharf_launch_args, shared) == 32, "wharf_launch_args.shared");
WHARF_ASSERT(offsetof(wharf_launch_args, args_len) == 36, "wharf_launch_args.args_len");
WHARF_ASSERT(offsetof(wharf_launch_args, args) == 40, "wharf_launch_args.args");
WHARF_ASSERT(sizeof(wharf_after_args) == 16, "size of wharf_after_args");
WHARF_ASSERT(offsetof(wharf_after_args, queue) == 0, "wharf_after_args.queue");
WHARF_ASSERT(offsetof(wharf_after_args, value) == 8, "wharf_after_args.value");
WHARF_ASSERT(sizeof(wharf_call_args) == 16, "size of wharf_call_args");
WHARF_ASSERT(offsetof(wharf_call_args, call) == 0, "wharf_call_args.call");
WHARF_ASSERT(offsetof(wharf_call_args, user) == 8, "wharf_call_args.user");
WHARF_ASSERT(sizeof(wharf_file_args) == 32, "size of wharf_file_args");
WHARF_ASSERT(offsetof(wharf_file_args, file) == 0, "wharf_file_args.file");
WHARF_ASSERT(offsetof(wharf_file_args, at) == 8, "wharf_file_args.at");
WHARF_ASSERT(offsetof(wharf_file_args, address) == 16, "wharf_file_args.address");
WHARF_ASSERT(offsetof(wharf_file_args, len) == 24, "wharf_file_args.len");
WHARF_ASSERT(sizeof(wharf_prefetch_args) == 24, "size of wharf_prefetch_args");
WHARF_ASSERT(offsetof(wharf_prefetch_args, at) == 0, "wharf_prefetch_args.at");
WHARF_ASSERT(offsetof(wharf_prefetch_args, len) == 8, "wharf_prefetch_args.len");
WHARF_ASSERT(offsetof(wharf_prefetch_args, to_host) == 16, "wharf_prefetch_args.to_host");

#endif /* WHARF_PLUGIN_H */
