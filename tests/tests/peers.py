"""Prints, as JSON, name and sha256 of every tensor of an archive, as an independent reader gives them.

Usage: peers.py FILE [typed], where FILE ends in .irpa, .safetensors or .gguf. With `typed`, of an .irpa, type and shape by
its entries' metadata instead of hashes.
"""

import hashlib
import json
import sys


def irpa(path):
    import numpy
    from iree.runtime import ParameterIndex

    index = ParameterIndex()
    index.load(path)
    for name, entry in index.items():
        if entry.is_file:
            yield name, bytes(numpy.array(entry.file_view, copy=False))
        else:
            pattern = bytes(numpy.array(entry.splat_pattern, copy=True))
            yield name, pattern * (entry.length // len(pattern))


def typed(path):
    from iree.runtime import ParameterIndex, parameter_index_entry_as_numpy_ndarray

    index = ParameterIndex()
    index.load(path)
    for name, entry in index.items():
        array = parameter_index_entry_as_numpy_ndarray(entry)
        yield name, f"{array.dtype} {list(array.shape)}"


def safetensors(path):
    from safetensors import deserialize

    with open(path, "rb") as file:
        for name, tensor in deserialize(file.read()):
            yield name, bytes(tensor["data"])


def gguf(path):
    from gguf import GGUFReader

    for tensor in GGUFReader(path).tensors:
        yield tensor.name, tensor.data.tobytes()


path = sys.argv[1]
if sys.argv[2:] == ["typed"]:
    print(json.dumps(dict(typed(path))))
    sys.exit()
readers = {"irpa": irpa, "safetensors": safetensors, "gguf": gguf}
tensors = readers[path.rsplit(".", 1)[-1]](path)
print(json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in tensors}))
