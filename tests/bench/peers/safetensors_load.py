"""safetensors' load_file into new NumPy arrays; prints one line of JSON.

    safetensors_load.py FILE load REPETITIONS
"""

import json
import sys
import time

from safetensors.numpy import load_file

file, _, repetitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
seconds, loaded = [], {}
for _ in range(repetitions):
    loaded = {}
    begin = time.perf_counter()
    loaded = load_file(file)
    seconds.append(time.perf_counter() - begin)
print(json.dumps({"op": seconds, "n": len(loaded), "bytes": sum(array.nbytes for array in loaded.values())}))
