"""Serving the studio: one process, one port, pages that are built on request."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from dialoom.errors import Advice
from dialoom.runs.errors import RunError

from .access import TOKEN, AccessControl, Keys, is_loopback
from .studio import Studio

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8790


def serve(
    paths: Sequence[Path],
    *,
    host: str = DEFAULT_HOST,
    port: int | None = None,
    allow_remote: bool = False,
    trust: bool = False,
    on_address: Callable[[str], None],
) -> None:
    """Serve a studio of run files until it is interrupted.

    Args:
        paths: The run files.
        host: The address of this machine to listen on.
        port: The port to listen on; by default 8790, or any free port if that is in use.
        allow_remote: Whether other machines may connect; required for a host other than loopback.
        trust: Whether the code and the addresses that the files refer to are used.
        on_address: Called with the address that admits a browser, and with a new address as soon as the last one has
            been used.

    Raises:
        RunError: If the library is not installed, or the host and port are not available.
        StoreError: If a file is not a run.
    """
    if not allow_remote and not is_loopback(host):
        raise RunError(
            f"host {host!r}: every machine that can reach this address could request the pages, and the connection is "
            "not encrypted",
            setting="host",
            advice=Advice("allow_remote", "set allow_remote to do so anyway"),
        )
    studio = Studio.open(paths, trust)
    try:
        import_module("nicegui")
    except ModuleNotFoundError as error:
        raise RunError(f'the studio needs {error.name}, but it is missing: pip install "dialoom[studio]"') from error
    import uvicorn

    from .application import build_application

    with open_socket(host, port) as listener:
        bound_host, bound_port = listener.getsockname()[:2]
        keys = Keys(lambda token: on_address(build_address(bound_host, bound_port, token)))
        application = AccessControl(
            build_application(studio), keys, bound_port, _find_host_names(host, allow_remote), allow_remote
        )
        on_address(build_address(bound_host, bound_port, keys.token))
        gc.collect()
        gc.freeze()  # imported objects stay: scanning them in each collection would delay pages
        config = uvicorn.Config(application, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listener])


def open_socket(host: str, port: int | None) -> socket.socket:
    """Return a listening socket.

    Raises:
        RunError: If the host and port are not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (DEFAULT_PORT, 0) if port is None else (port,):
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            reason = error.strerror or str(error)
    if port is None:
        raise RunError(f"host {host!r}: cannot listen on it: {reason}", setting="host")
    raise RunError(f"port {port}: cannot listen on {host}: {reason}", setting="port")


def build_address(host: str, port: int, token: str) -> str:
    """Return the address that admits a browser."""
    display_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{display_host}]' if ':' in display_host else display_host}:{port}/?{TOKEN}={token}"


def _find_host_names(host: str, is_remote: bool) -> Collection[str]:
    """Return the host names of this machine for which the studio answers requests."""
    if not is_remote:
        return ()
    names = [host]
    with suppress(OSError):
        names += [socket.gethostname(), socket.getfqdn()]
    return names
