"""What runs inside an engine's process: llama.cpp's server, for as long as the parent lives.

The parent writes one `Launch` as a JSON line to standard input and keeps that pipe open; one line on standard output
says that the model is loaded and the port answers. End of input means that the parent is gone, however it went: the
process then removes its slot folder and ends. Everything that llama.cpp prints goes to standard error.
"""

import ctypes
import os
import shutil
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

READY = b"ready\n"
_HTTP_THREADS = 512
"""A call holds one of the server's threads until it ends, also while it waits for a slot: with llama.cpp's default of
a few threads, 32 waiting calls leave none to answer /health. An idle thread costs about 50 KB."""
_PR_SET_PDEATHSIG = 1


class Launch(Struct, frozen=True, kw_only=True):
    """What one engine process is told. Tokens for ``context``, which is for each slot."""

    parent: int
    """Process id of who started it."""
    weights: str
    alias: str
    slots: int
    context: int
    threads: int
    cache_mib: int
    port: int
    """Reserved by the parent with SO_REUSEPORT, so that no other program takes it between restarts."""
    slot_folder: str
    """Where saved slots go: made by the process, kept over restarts, and of a name that nobody else can guess."""


def serve(launch: Launch) -> Any:  # noqa: ANN401 - xllamacpp has no types
    """Load the weights and start serving; the server lives until the process ends.

    Raises:
        RuntimeError: llama.cpp refuses the weights or the parameters.
    """
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = launch.weights, {launch.alias}
    params.hostnames, params.port, params.reuse_port = ["127.0.0.1"], launch.port, True
    params.n_threads_http = _HTTP_THREADS
    params.n_parallel, params.n_ctx = launch.slots, launch.context * launch.slots  # n_ctx is shared out over the slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = launch.threads
    params.cache_prompt, params.cache_ram_mib = True, launch.cache_mib
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    params.slot_save_path = launch.slot_folder + os.sep
    params.fit_params = False  # what was asked for or an error, not less context where memory is short
    params.use_jinja, params.ui, params.verbosity = True, False, 1
    return xllamacpp.Server(params)


def main() -> None:
    """Serve until told to end by SIGTERM or by the end of standard input."""
    # xllamacpp holds the GIL while it loads, so that no Python code could see the parent die: the kernel does.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    announce = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    launch = msgspec.json.decode(sys.stdin.buffer.readline(), type=Launch)
    if os.getppid() != launch.parent:
        sys.exit("the parent died before the kernel could be asked to tell of it")
    try:
        _server = serve(launch)  # held: its end is the server's
    except RuntimeError as error:
        sys.exit(f"llama.cpp: {error}")
    Path(launch.slot_folder).mkdir(mode=0o700, exist_ok=True)  # not before: killed while loading, it leaves nothing
    signal.signal(signal.SIGTERM, lambda _signal, _frame: end(launch))
    with suppress(BrokenPipeError):  # a parent that died meanwhile: its end is read next
        os.write(announce, READY)
    sys.stdin.buffer.read()
    end(launch)


def end(launch: Launch) -> NoReturn:
    """Leave nothing behind and be gone at once: calls that still run have nobody to answer to."""
    shutil.rmtree(launch.slot_folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
