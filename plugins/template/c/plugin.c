/* @NAME@: a plugin of Wharf in C11. Memory of the process as a device: allocate, map, copy, fill, update; no kernels.
 *
 * What to change: `allocate`, `release`, `run` and what they need. Order, waiting, splitting and late frees are Wharf's
 * business. A queue is a ring of operations; they run in `poll` and `wait` (pace POLLED), one queue's in order.
 */
#define _POSIX_C_SOURCE 200809L
#include "wharf_plugin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ID "@NAME@"
#define VENDOR "@VENDOR@"
#define VERSION "0.1.0"

WHARF_PLUGIN_META(ID, VENDOR, VERSION, WHARF_PLUGIN_FLAG_CONTAINS_PANICS);

enum {
  DEVICE = 1,       /* the handle of the only device */
  DEPTH = 32,       /* operations that a queue holds */
  PATTERN_MAX = 64, /* bytes of a pattern; Wharf makes longer ones of these */
  UPDATE_MAX = 1024,
  ALIGN = 64,
  QUEUES = 256, /* at once */
  STAMPS = 1024, /* operations whose times a queue keeps */
};

static const wharf_host_v1 *host; /* set between open and close */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* Reads as much of a struct as both sides know; the rest is zero. */
static void take(void *to, size_t size, const void *from) {
  uint32_t given = *(const uint32_t *)from;
  memset(to, 0, size);
  memcpy(to, from, given < size ? given : size);
}

static wharf_status fault(uint32_t kind) { return wharf_failed(kind, WHARF_BLAME_BACKEND); }
static wharf_status misuse(uint32_t kind) { return wharf_failed(kind, WHARF_BLAME_CALLER); }

/* A chain may hold what this plugin does not know; what is required may not be skipped. */
static int knows(const wharf_ext *chain) {
  for (; chain; chain = (const wharf_ext *)chain->next)
    if (chain->flags & WHARF_EXT_FLAG_REQUIRED) return 0;
  return 1;
}

/* ---- devices ---- */

static wharf_status list(uint64_t *devices, uint32_t cap, uint32_t *count) {
  if (!host) return misuse(WHARF_KIND_FAILED_PRECONDITION);
  if (cap) devices[0] = DEVICE;
  *count = 1;
  return wharf_ok();
}

static wharf_status known(uint64_t device) {
  if (!host) return misuse(WHARF_KIND_FAILED_PRECONDITION);
  return device == DEVICE ? wharf_ok() : misuse(WHARF_KIND_INVALID_DEVICE);
}

static wharf_status caps(uint64_t device, wharf_caps *out) {
  wharf_caps mine;
  uint32_t size = out->struct_size;
  wharf_status status = known(device);
  if (status.code) return status;
  memset(&mine, 0, sizeof mine);
  mine.struct_size = sizeof mine;
  mine.ops = 1u << WHARF_OP_BARRIER | 1u << WHARF_OP_COPY | 1u << WHARF_OP_FILL | 1u << WHARF_OP_UPDATE;
  mine.flags = WHARF_CAPS_FLAG_MAPPABLE | WHARF_CAPS_FLAG_COHERENT | WHARF_CAPS_FLAG_HOST_COPIES;
  mine.pace = WHARF_PACE_POLLED;
  mine.poll_ns = 20000;
  mine.depth = DEPTH;
  mine.lanes = QUEUES;
  mine.align = ALIGN;
  mine.pattern_max = PATTERN_MAX;
  mine.update_max = UPDATE_MAX;
  mine.alloc_max = UINT64_MAX;
  if (size < 56) return misuse(WHARF_KIND_INVALID_ARGUMENT); /* shorter than any version of the struct */
  mine.struct_size = size < sizeof mine ? size : (uint32_t)sizeof mine;
  memcpy(out, &mine, mine.struct_size);
  return wharf_ok();
}

static wharf_status property(uint64_t device, uint32_t id, uint8_t *buf, uint64_t cap, uint64_t *len) {
  uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  const void *value;
  wharf_status status = known(device);
  if (status.code) return status;
  switch (id) {
    case WHARF_PROPERTY_NAME: value = ID; *len = sizeof ID - 1; break;
    case WHARF_PROPERTY_VENDOR: value = VENDOR; *len = sizeof VENDOR - 1; break;
    case WHARF_PROPERTY_MEMORY_KIND: value = "unified"; *len = 7; break;
    case WHARF_PROPERTY_GLOBAL_MEM_SIZE: value = &memory; *len = sizeof memory; break;
    default: return fault(WHARF_KIND_NOT_FOUND);
  }
  if (cap) memcpy(buf, value, *len < cap ? *len : cap);
  return wharf_ok();
}

static wharf_status peer(uint64_t from, uint64_t to, uint32_t *can) {
  wharf_status status = known(from);
  if (!status.code) status = known(to);
  if (!status.code) *can = 1;
  return status;
}

static const wharf_device_v1 devices = {
    {sizeof devices, WHARF_ABI_MAJOR, WHARF_ABI_MINOR}, list, known, known, caps, property, peer};

/* ---- memory ---- */

static wharf_status allocate(uint64_t device, const wharf_alloc *want, wharf_block *out) {
  wharf_alloc asked;
  void *base = NULL;
  wharf_status status = known(device);
  if (status.code) return status;
  take(&asked, sizeof asked, want);
  if (!asked.len || (asked.align & (asked.align - 1))) return misuse(WHARF_KIND_INVALID_ARGUMENT);
  if (!knows(asked.next)) return fault(WHARF_KIND_UNSUPPORTED);
  if (asked.len > (uint64_t)PTRDIFF_MAX) return fault(WHARF_KIND_RESOURCE_EXHAUSTED);
  if (posix_memalign(&base, asked.align > ALIGN ? asked.align : ALIGN, asked.len))
    return fault(WHARF_KIND_RESOURCE_EXHAUSTED);
  out->base = (uint64_t)(uintptr_t)base;
  out->len = asked.len;
  out->native = 0;
  return wharf_ok();
}

static wharf_status release(uint64_t device, const wharf_block *block) {
  wharf_status status = known(device);
  if (status.code) return status;
  if (!block->base) return misuse(WHARF_KIND_INVALID_ARGUMENT);
  free((void *)(uintptr_t)block->base);
  return wharf_ok();
}

static wharf_status map(uint64_t device, const wharf_block *block, uint64_t offset, uint64_t len, uint32_t access,
                        void **at) {
  (void)access;
  if (offset > block->len || len > block->len - offset) return misuse(WHARF_KIND_OUT_OF_RANGE);
  *at = (void *)(uintptr_t)(block->base + offset);
  return known(device);
}

/* A mapping is the memory itself, so there is nothing to end and nothing to make visible. */
static wharf_status nothing(uint64_t device, const wharf_block *block, uint64_t offset, uint64_t len) {
  (void)block, (void)offset, (void)len;
  return known(device);
}

static wharf_status register_host(uint64_t device, void *memory, uint64_t len, uint32_t access, wharf_block *out) {
  (void)access;
  out->base = (uint64_t)(uintptr_t)memory;
  out->len = len;
  out->native = 0;
  return known(device);
}

static wharf_status unregister_host(uint64_t device, const wharf_block *block) {
  (void)block;
  return known(device);
}

static const wharf_memory_v1 memory = {{sizeof memory, WHARF_ABI_MAJOR, WHARF_ABI_MINOR},
                                       allocate,      release,         map,  nothing, nothing, nothing,
                                       register_host, unregister_host, NULL, NULL};

/* ---- queues ---- */

typedef struct {
  wharf_op op;
  uint8_t bytes[UPDATE_MAX]; /* what the operation borrowed */
} step;

typedef struct {
  pthread_mutex_t lock; /* of the ring: `submit`, `poll` and `wait` come from any thread */
  uint64_t *value;
  void *cookie;
  uint32_t first, count;
  step ring[DEPTH];
  struct {
    uint64_t value, begin_ns, end_ns;
  } stamps[STAMPS];
} queue;

static uint32_t open_queues; /* under `opening` */

/* One queue more or less; whether there is room. */
static int count_queue(int more) {
  int room;
  pthread_mutex_lock(&opening);
  room = !more || open_queues < QUEUES;
  if (room) open_queues += more ? 1u : ~0u;
  pthread_mutex_unlock(&opening);
  return room;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static queue *at(uint64_t handle) { return (queue *)(uintptr_t)handle; }

static wharf_status create(uint64_t device, const wharf_queue_args *args, uint64_t *out) {
  wharf_queue_args asked;
  queue *made;
  wharf_status status = known(device);
  if (status.code) return status;
  take(&asked, sizeof asked, args);
  if (!asked.value) return misuse(WHARF_KIND_INVALID_ARGUMENT);
  if (!knows(asked.next)) return fault(WHARF_KIND_UNSUPPORTED);
  if (!count_queue(1)) return fault(WHARF_KIND_RESOURCE_EXHAUSTED);
  made = calloc(1, sizeof *made);
  if (!made) {
    count_queue(0);
    return fault(WHARF_KIND_RESOURCE_EXHAUSTED);
  }
  pthread_mutex_init(&made->lock, NULL);
  made->value = asked.value;
  made->cookie = asked.cookie;
  *out = (uint64_t)(uintptr_t)made;
  return wharf_ok();
}

static wharf_status destroy(uint64_t handle) {
  if (!handle) return misuse(WHARF_KIND_INVALID_HANDLE);
  pthread_mutex_destroy(&at(handle)->lock);
  free(at(handle));
  count_queue(0);
  return wharf_ok();
}

/* Copies what the operation borrows, so that the caller's bytes may change. */
static wharf_status capture(step *to, const wharf_op *op) {
  to->op = *op;
  if (!knows(op->next)) return fault(WHARF_KIND_UNSUPPORTED);
  switch (op->kind) {
    case WHARF_OP_BARRIER:
    case WHARF_OP_COPY: return wharf_ok();
    case WHARF_OP_FILL:
      if (!op->args.fill.pattern_len || op->args.fill.pattern_len > PATTERN_MAX)
        return misuse(WHARF_KIND_INVALID_ARGUMENT);
      memcpy(to->bytes, op->args.fill.pattern, op->args.fill.pattern_len);
      return wharf_ok();
    case WHARF_OP_UPDATE:
      if (op->args.update.len > UPDATE_MAX) return misuse(WHARF_KIND_INVALID_ARGUMENT);
      memcpy(to->bytes, op->args.update.bytes, op->args.update.len);
      return wharf_ok();
    default: return fault(WHARF_KIND_UNSUPPORTED);
  }
}

static wharf_status submit(uint64_t handle, const wharf_op *ops, uint32_t count, uint32_t stride, uint32_t hint,
                           uint32_t *taken) {
  queue *to = at(handle);
  wharf_status status = wharf_ok();
  (void)hint;
  *taken = 0;
  if (!handle) return misuse(WHARF_KIND_INVALID_HANDLE);
  if (stride < sizeof *ops) return misuse(WHARF_KIND_INVALID_ARGUMENT);
  pthread_mutex_lock(&to->lock);
  while (*taken < count && to->count < DEPTH) {
    const wharf_op *op = (const wharf_op *)((const char *)ops + (size_t)*taken * stride);
    status = capture(&to->ring[(to->first + to->count) % DEPTH], op);
    if (status.code) break;
    to->count++;
    ++*taken;
  }
  pthread_mutex_unlock(&to->lock);
  return status;
}

static void run(const step *one) {
  const wharf_op_args *a = &one->op.args;
  switch (one->op.kind) {
    case WHARF_OP_COPY: memmove((void *)(uintptr_t)a->copy.to, (void *)(uintptr_t)a->copy.from, a->copy.len); break;
    case WHARF_OP_UPDATE: memcpy((void *)(uintptr_t)a->update.to, one->bytes, a->update.len); break;
    case WHARF_OP_FILL: {
      uint64_t i, n = a->fill.pattern_len;
      uint8_t *to = (uint8_t *)(uintptr_t)a->fill.to;
      for (i = 0; i + n <= a->fill.len; i += n) memcpy(to + i, one->bytes, n);
      memcpy(to + i, one->bytes, a->fill.len - i);
      break;
    }
    default: break; /* a barrier is its place in the order */
  }
}

static wharf_status poll(uint64_t handle) {
  queue *of = at(handle);
  if (!handle) return misuse(WHARF_KIND_INVALID_HANDLE);
  pthread_mutex_lock(&of->lock);
  while (of->count) {
    const step *one = &of->ring[of->first];
    int stamped = one->op.flags & WHARF_OP_FLAG_STAMP;
    uint64_t begin = stamped ? now_ns() : 0;
    run(one);
    if (stamped) {
      of->stamps[one->op.done % STAMPS].value = one->op.done;
      of->stamps[one->op.done % STAMPS].begin_ns = begin;
      of->stamps[one->op.done % STAMPS].end_ns = now_ns();
    }
    if (one->op.done) wharf_raise(of->value, one->op.done);
    if (one->op.flags & WHARF_OP_FLAG_TELL) host->tell(of->cookie);
    of->first = (of->first + 1) % DEPTH;
    of->count--;
  }
  pthread_mutex_unlock(&of->lock);
  return wharf_ok();
}

static wharf_status wait(uint64_t handle, uint64_t value, uint64_t deadline_ns) {
  (void)value, (void)deadline_ns;
  return poll(handle);
}

static wharf_status times(uint64_t handle, uint64_t value, uint64_t *begin_ns, uint64_t *end_ns) {
  queue *of = at(handle);
  wharf_status status = fault(WHARF_KIND_NOT_FOUND);
  if (!handle) return misuse(WHARF_KIND_INVALID_HANDLE);
  pthread_mutex_lock(&of->lock);
  if (value && of->stamps[value % STAMPS].value == value) {
    *begin_ns = of->stamps[value % STAMPS].begin_ns;
    *end_ns = of->stamps[value % STAMPS].end_ns;
    status = wharf_ok();
  }
  pthread_mutex_unlock(&of->lock);
  return status;
}

static const wharf_queue_v1 queues = {{sizeof queues, WHARF_ABI_MAJOR, WHARF_ABI_MINOR},
                                      create, destroy, submit, poll, wait, times, NULL};

/* ---- the plugin ---- */

static wharf_status plugin_open(const wharf_host_v1 *given, const wharf_ext *config) {
  wharf_status status = wharf_ok();
  if (!knows(config)) return fault(WHARF_KIND_UNSUPPORTED);
  pthread_mutex_lock(&opening);
  if (host)
    status = misuse(WHARF_KIND_FAILED_PRECONDITION);
  else
    host = given;
  pthread_mutex_unlock(&opening);
  return status;
}

static wharf_status plugin_close(void) {
  pthread_mutex_lock(&opening);
  host = NULL;
  pthread_mutex_unlock(&opening);
  return wharf_ok();
}

static wharf_status query(wharf_str id, uint32_t major, const void **table) {
  *table = NULL;
  if (major != WHARF_ABI_MAJOR) return fault(WHARF_KIND_NOT_FOUND);
  if (WHARF_IS(id, WHARF_ID_DEVICE)) *table = &devices;
  if (WHARF_IS(id, WHARF_ID_MEMORY)) *table = &memory;
  if (WHARF_IS(id, WHARF_ID_QUEUE)) *table = &queues;
  return *table ? wharf_ok() : fault(WHARF_KIND_NOT_FOUND);
}

/* This plugin's failures have no words beside their code. */
static wharf_status error_text(uint64_t err, uint8_t *buf, uint64_t cap, uint64_t *len) {
  (void)err, (void)buf, (void)cap, (void)len;
  return fault(WHARF_KIND_NOT_FOUND);
}
static void error_drop(uint64_t err) { (void)err; }

#define TEXT(literal) {(const uint8_t *)(literal), sizeof(literal) - 1}
static const wharf_plugin_v1 plugin = {
    WHARF_ABI_MAGIC_BYTES,
    {sizeof plugin, WHARF_ABI_MAJOR, WHARF_ABI_MINOR},
    0, /* works with any host of this major */
    WHARF_ABI_DRAFT,
    0,
    WHARF_PLUGIN_FLAG_CONTAINS_PANICS,
    {TEXT(ID), TEXT(VENDOR), TEXT(VERSION), TEXT(__DATE__ " " __TIME__)},
    plugin_open,
    plugin_close,
    query,
    error_text,
    error_drop};

const wharf_plugin_v1 *wharf_plugin_entry_v1(uint32_t host_major, uint32_t host_minor) {
  (void)host_minor;
  return host_major == WHARF_ABI_MAJOR ? &plugin : NULL;
}
