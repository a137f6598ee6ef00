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
