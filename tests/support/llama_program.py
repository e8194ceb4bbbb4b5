"""llama.cpp's server on a .gguf file, from the xllamacpp wheel; it ends when its stdin does.

It runs as a program of its own and imports nothing of ours. It prints its address once it serves.
"""

import sys

import xllamacpp


def main() -> None:
    """Serve `argv[1]` with two slots of 4,096 tokens each.

    On one thread: several would busy-wait for each other, which is slow on a busy machine.
    """
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx = 8192
    parameters.n_parallel = 2
    parameters.port = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.cache_ram_mib = 0
    parameters.endpoint_props = True
    server = xllamacpp.Server(parameters)
    print(f"serving {server.listening_address}", flush=True)  # noqa: T201 - its caller reads it
    sys.stdin.read()


if __name__ == "__main__":
    main()
