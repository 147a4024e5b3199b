"""llama.cpp's own server, from its Python package: `python -m tests.llm.serve MODEL.gguf PORT CONTEXT`."""

from __future__ import annotations

import sys
import threading

import xllamacpp


def serve(weights: str, port: int, context: int) -> None:
    """Serve a model on loopback until the process ends.

    It has one thread, as several wait for each other on a busy machine, and one slot, so that a request can use the
    whole context. It logs the completed and the refused requests.
    """
    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.port = port
    settings.n_ctx = context
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_ram_mib = 1024  # by default, up to 8 GiB of earlier prompts are kept
    settings.verbosity = 4
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}\n")
    threading.Event().wait()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
