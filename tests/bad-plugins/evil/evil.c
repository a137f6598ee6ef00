/* A plugin that breaks one rule, the one that EVIL names. It is the template's plugin (plugin.c, made beside this file by
 * the test) with one table changed. */
#define wharf_plugin_entry_v1 good_entry
#include "plugin.c"
#undef wharf_plugin_entry_v1

#include <locale.h>
#include <signal.h>
#include <stdio.h>

#ifndef EVIL
#error "EVIL names what is wrong, as a string"
#endif
#define IS(name) (strcmp(EVIL, name) == 0)

static wharf_plugin_v1 bad;
static wharf_device_v1 bad_devices;
static wharf_memory_v1 bad_memory;
static wharf_queue_v1 bad_queues;

static void *sleep_for_ever(void *nothing) {
  for (;;) pause();
  return nothing;
}

/* What a process may not survive, at the place that the name ends with. */
static void harm(const char *place) {
  const char *at = strrchr(EVIL, '-');
  if (!at || strcmp(at + 1, place)) return;
  if (!strncmp(EVIL, "abort", 5)) abort();
  if (!strncmp(EVIL, "exit", 4)) _exit(3);
  if (!strncmp(EVIL, "crash", 5)) *(volatile int *)8 = 1;
  if (!strncmp(EVIL, "hang", 4)) sleep_for_ever(NULL);
  if (!strncmp(EVIL, "noise", 5)) {
    printf("a plugin should not print this\n");
    fflush(stdout);
  }
  if (!strncmp(EVIL, "locale", 6)) setlocale(LC_ALL, "");
  if (!strncmp(EVIL, "signals", 7)) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
  }
  if (!strncmp(EVIL, "thread", 6)) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, sleep_for_ever, NULL)) pthread_detach(thread);
  }
}

static wharf_status evil_open(const wharf_host_v1 *given, const wharf_ext *config) {
  harm("open");
  if (IS("refuses")) return fault(WHARF_KIND_UNAVAILABLE);
  if (IS("code")) {
    wharf_status odd = {-17, 0, 99};
    return odd;
  }
  return plugin_open(given, config);
}

static wharf_status evil_list(uint64_t *out, uint32_t cap, uint32_t *count) {
  wharf_status status = list(out, cap, count);
  harm("list");
  if (IS("many")) *count = UINT32_MAX;
  if (IS("null-handle") && cap) out[0] = 0;
  if (IS("twins")) {
    if (cap > 1) out[1] = out[0];
    *count = 2;
  }
  if (IS("none")) *count = 0;
  return status;
}

static wharf_status evil_caps(uint64_t device, wharf_caps *out) {
  uint32_t size = out->struct_size;
  wharf_status status = caps(device, out);
  harm("caps");
  if (size < sizeof *out) return status;
  if (IS("caps-align")) out->align = 3;
  if (IS("caps-depth")) out->depth = 0;
  if (IS("caps-pace")) out->pace = 77;
  if (IS("caps-pattern")) out->pattern_max = 0;
  if (IS("caps-update")) out->update_max = 0;
  if (IS("caps-ops")) out->ops = UINT64_MAX;
  if (IS("caps-size")) out->struct_size = UINT32_MAX;
  return status;
}

static wharf_status evil_property(uint64_t device, uint32_t id, uint8_t *buf, uint64_t cap, uint64_t *len) {
  wharf_status status = property(device, id, buf, cap, len);
  if (IS("property-length")) *len = UINT64_MAX;
  if (IS("property-bytes") && id == WHARF_PROPERTY_NAME) {
    *len = 4;
    if (cap >= 4) memcpy(buf, "\xff\xfe\x00\n", 4);
    return wharf_ok();
  }
  if (IS("free-above-total") && id == WHARF_PROPERTY_MEMORY_FREE) {
    uint64_t all = UINT64_MAX;
    *len = sizeof all;
    if (cap >= sizeof all) memcpy(buf, &all, sizeof all);
    return wharf_ok();
  }
  return status;
}

static wharf_status evil_allocate(uint64_t device, const wharf_alloc *want, wharf_block *out) {
  static uint64_t first;
  wharf_status status = allocate(device, want, out);
  harm("allocate");
  if (status.code) return status;
  if (IS("block-null")) out->base = 0;
  if (IS("block-short")) out->len = 1;
  if (IS("block-wraps")) out->len = UINT64_MAX;
  if (IS("block-misaligned")) out->base += 1;
  if (IS("block-twice")) {
    if (!first) first = out->base;
    out->base = first;
  }
  return status;
}

static wharf_status evil_free(uint64_t device, const wharf_block *block) {
  if (IS("free-refused")) return fault(WHARF_KIND_BACKEND_FAILURE);
  if (!strncmp(EVIL, "block-", 6)) return wharf_ok(); /* what it gave out is not what it has */
  return release(device, block);
}

static wharf_status evil_create(uint64_t device, const wharf_queue_args *args, uint64_t *out) {
  wharf_status status = create(device, args, out);
  harm("queue");
  if (IS("queue-zero")) *out = 0;
  return status;
}

static wharf_status evil_submit(uint64_t handle, const wharf_op *ops, uint32_t count, uint32_t stride, uint32_t hint,
                                uint32_t *taken) {
  harm("submit");
  if (IS("takes-more")) {
    wharf_status status = submit(handle, ops, count, stride, hint, taken);
    *taken = count + 7;
    return status;
  }
  if (IS("submit-fails")) return fault(WHARF_KIND_BACKEND_FAILURE);
  return submit(handle, ops, count, stride, hint, taken);
}

static wharf_status evil_poll(uint64_t handle) {
  queue *of = at(handle);
  harm("poll");
  if (IS("never")) return wharf_ok();
  if (IS("lost")) {
    host->fail(of->cookie, fault(WHARF_KIND_DEVICE_LOST));
    host->fail(of->cookie, fault(WHARF_KIND_DEVICE_LOST)); /* the first counts */
    return wharf_ok();
  }
  if (IS("tells-twice")) {
    host->tell(of->cookie);
    host->tell(of->cookie);
  }
  return poll(handle);
}

static wharf_status evil_wait(uint64_t handle, uint64_t value, uint64_t deadline_ns) {
  (void)value, (void)deadline_ns;
  if (IS("never") || IS("lost") || IS("tells-twice")) return evil_poll(handle);
  return wait(handle, value, deadline_ns);
}

static wharf_status evil_destroy(uint64_t handle) {
  if (IS("tells-late")) {
    void *cookie = at(handle)->cookie;
    wharf_status status = destroy(handle);
    host->tell(cookie);
    return status;
  }
  return destroy(handle);
}

static wharf_status evil_query(wharf_str id, uint32_t major, const void **table) {
  wharf_status status = query(id, major, table);
  if (IS("no-table") && WHARF_IS(id, WHARF_ID_QUEUE)) {
    *table = NULL;
    return fault(WHARF_KIND_NOT_FOUND);
  }
  if (IS("null-table") && WHARF_IS(id, WHARF_ID_MEMORY)) *table = NULL;
  if (IS("odd-table") && WHARF_IS(id, WHARF_ID_MEMORY)) *table = (const char *)&bad_memory + 1;
  if (*table == &devices) *table = &bad_devices;
  if (*table == &memory) *table = &bad_memory;
  if (*table == &queues) *table = &bad_queues;
  return status;
}

WHARF_EXPORT const wharf_plugin_v1 *wharf_plugin_entry_v1(uint32_t host_major, uint32_t host_minor) {
  bad = *good_entry(host_major, host_minor);
  bad_devices = devices;
  bad_memory = memory;
  bad_queues = queues;
  bad.open = evil_open;
  bad.query = evil_query;
  bad_devices.list = evil_list;
  bad_devices.caps = evil_caps;
  bad_devices.property = evil_property;
  bad_memory.allocate = evil_allocate;
  bad_memory.free = evil_free;
  bad_queues.create = evil_create;
  bad_queues.destroy = evil_destroy;
  bad_queues.submit = evil_submit;
  bad_queues.poll = evil_poll;
  bad_queues.wait = evil_wait;
  harm("entry");
  if (IS("refuses-host")) return NULL;
  if (IS("magic")) bad.magic[0] = 'X';
  if (IS("major")) bad.head.major = 2;
  if (IS("draft")) bad.draft = WHARF_ABI_DRAFT + 1;
  if (IS("minimum")) bad.min_host_minor = 999;
  if (IS("size-zero")) bad.head.struct_size = 0;
  if (IS("size-short")) bad.head.struct_size = 40;
  if (IS("table-short")) bad_queues.head.struct_size = 12;
  if (IS("table-long")) bad_queues.head.struct_size = UINT32_MAX;
  if (IS("table-major")) bad_memory.head.major = 9;
  if (IS("no-open")) bad.open = NULL;
  if (IS("no-query")) bad.query = NULL;
  if (IS("no-submit")) bad_queues.submit = NULL;
  if (IS("no-free")) bad_memory.free = NULL;
  if (IS("no-caps")) bad_devices.caps = NULL;
  if (IS("id-other")) bad.names.id = wharf_text("other", 5);
  if (IS("id-empty")) bad.names.id = wharf_text("", 0);
  if (IS("id-bytes")) bad.names.id = wharf_text("\xff\xfe", 2);
  if (IS("id-long")) bad.names.id.len = UINT64_MAX;
  if (IS("id-null")) bad.names.id.ptr = NULL;
  if (IS("odd-descriptor")) return (const wharf_plugin_v1 *)((const char *)&bad + 4);
  return &bad;
}
