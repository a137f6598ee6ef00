"""IREE's own parameter load and gather of all entries of an archive in one call; prints one line of JSON.

    iree_load.py FILE load|gather REPETITIONS

What is timed is the call of its io_parameters module until the signal fence is reached: provider and queue, no program.
The target of a gather is allocated once. Needs iree-base-runtime and numpy.
"""

import json
import struct
import sys
import time

import iree.runtime as rt


def buffer(data):
    made = rt.VmBuffer(len(data))
    memoryview(made)[:] = data
    return made


def main():
    file, op, repetitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
    instance = rt.VmInstance()
    device = rt.get_device("local-task")
    hal = rt.create_hal_module(instance, device)
    index = rt.ParameterIndex()
    index.load(file, mmap=True)
    entries = [(key, entry.length) for key, entry in index.items()]
    module = rt.create_io_parameters_module(instance, index.create_provider(scope="m"))
    context = rt.VmContext(instance, [hal, module])
    devices, none = rt.VmVariantList(1), rt.VmVariantList(1)
    none.push_int(0)
    context.invoke(hal.lookup_function("devices.get"), none, devices)
    own = devices.get_as_ref(0)

    table, keys, spans, at, end = [], [], [], 0, 0
    for key, length in entries:
        key = key.encode()
        table.append(struct.pack("<II", at, len(key)))
        keys.append(key)
        at += len(key)
        end = (end + 63) // 64 * 64
        spans.append(struct.pack("<QQQ", 0, end if op == "gather" else 0, length))
        end += length
    scope, table, keys, spans = map(buffer, (b"m", b"".join(table), b"".join(keys), b"".join(spans)))

    kinds = rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE
    usage = rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING
    target = None
    if op == "gather":
        target = device.allocator.allocate_buffer(memory_type=kinds, allowed_usage=usage, allocation_size=end)
    semaphore, wait = device.create_semaphore(0), rt.HalFence(0)
    function = module.lookup_function(op)
    seconds = []
    for repetition in range(repetitions):
        signal = rt.HalFence.create_at(semaphore, repetition + 1)
        arguments, results = rt.VmVariantList(11), rt.VmVariantList(1)
        arguments.push_ref(own)
        arguments.push_int(-1)
        for fence in (wait, signal):
            arguments.push_ref(fence)
        arguments.push_ref(scope)
        if target is not None:
            arguments.push_ref(target)
        else:
            arguments.push_int(-1)
            arguments.push_int(int(kinds))
            arguments.push_int(int(usage))
        for what in (table, keys, spans):
            arguments.push_ref(what)
        begin = time.perf_counter()
        context.invoke(function, arguments, results)
        signal.wait()
        seconds.append(time.perf_counter() - begin)
        del results
    print(json.dumps({"op": seconds, "n": len(entries), "bytes": sum(length for _, length in entries)}))


main()
