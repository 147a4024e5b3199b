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
    studio = Studio.of(paths, trust)
    try:
        import_module("nicegui")
    except ModuleNotFoundError as error:
        raise RunError(f'the studio needs {error.name}, but it is missing: pip install "dialoom[studio]"') from error
    import uvicorn

    from .application import build

    with listening(host, port) as bound:
        name, number = bound.getsockname()[:2]
        keys = Keys(lambda token: on_address(address_of(name, number, token)))
        application = AccessControl(build(studio), keys, number, _names(host, allow_remote), allow_remote)
        on_address(address_of(name, number, keys.token))
        gc.collect()
        gc.freeze()  # imported objects stay: scanning them in each collection would delay pages
        settings = uvicorn.Config(application, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
        uvicorn.Server(settings).run(sockets=[bound])


def listening(host: str, port: int | None) -> socket.socket:
    """Return a listening socket.

    Raises:
        RunError: If the host and port are not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (DEFAULT_PORT, 0) if port is None else (port,):
        bound = socket.socket(family)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, number))
            bound.listen(128)
            return bound
        except OSError as error:
            bound.close()
            reason = error.strerror or str(error)
    raise RunError(f"port {port}: cannot listen on {host}: {reason}", setting="port")


def address_of(host: str, port: int, token: str) -> str:
    """Return the address that admits a browser."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/?{TOKEN}={token}"


def _names(host: str, is_remote: bool) -> Collection[str]:
    """Return the host names of this machine for which the studio answers requests."""
    if not is_remote:
        return ()
    found = [host]
    with suppress(OSError):
        found += [socket.gethostname(), socket.getfqdn()]
    return found
