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
/* The record that says what the plugin is without being run; once, in one C file, with literals of at most 256 bytes.
 * `id`: 1 to 64 of a-z 0-9 _ - and dot. `flags`: WHARF_PLUGIN_FLAG_*; C throws nothing, so a plugin in C contains panics. */
#define WHARF_PLUGIN_META(id_, vendor_, version_, flags_)                                         \
  __attribute__((section(".wharf.plugin"), used)) static const struct __attribute__((packed)) {   \
    char magic[8];                                                                                \
    uint32_t len;                                                                                 \
    uint16_t id_tag, id_len;                                                                      \
    char id[sizeof(id_) - 1];                                                                     \
    uint16_t vendor_tag, vendor_len;                                                              \
    char vendor[sizeof(vendor_) - 1];                                                             \
    uint16_t version_tag, version_len;                                                            \
    char version[sizeof(version_) - 1];                                                           \
    uint16_t abi_tag, abi_len, major, minor, draft, min_host_minor;                               \
    uint16_t flags_tag, flags_len;                                                                \
    uint64_t flags;                                                                               \
  } wharf_plugin_meta = {                                                                         \
      "WHARFMD1", sizeof(wharf_plugin_meta),                                                      \
      1, sizeof(id_) - 1, id_,                                                                    \
      2, sizeof(vendor_) - 1, vendor_,                                                            \
      3, sizeof(version_) - 1, version_,                                                          \
      4, 8, WHARF_ABI_MAJOR, WHARF_ABI_MINOR, WHARF_ABI_DRAFT, 0,                                 \
      5, 8, (flags_)}
#endif

