"""llama.cpp's own HTTP server, from the `xllamacpp` wheel, with one gguf. Prints its base_url.

Usage: foreign_server.py MODEL_FILE. Stays until it is ended. Nothing of what answers is ours.
"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"foreign-gemma"}
params.n_ctx = 4096
params.n_parallel = 2
params.endpoint_slots = True
params.port = 0
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address + "/v1", flush=True)
threading.Event().wait()
