"""The reply cache shared between runs, and the markers for providers' prompt caches."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, Self, TypeVar

from pydantic import BaseModel

from dialoom.inputs import check_regular
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import message_identity
from dialoom.roles.binding import OFFLINE_PREFIX
from dialoom.roles.errors import CacheError
from dialoom.version import __version__

from .calls import CallPlace, Completion, Request
from .completions import deserialize_reply, serialize_reply
from .wire import convert_messages, is_tool_message

_APPLICATION_ID = 0x64694361  # "diCa"
_SCHEMA_VERSION = 2
_BUSY_SECONDS = 60.0
_USER_CODE_PREFIXES = ("python:", "graph:")

Result = TypeVar("Result")


class ReplyStore(Protocol):
    """A store of replies shared between runs."""

    async def find(self, request: Request, place: CallPlace) -> Completion | None:
        """Return the reply to a request that this or another run has cached; `None` if there is none."""

    async def store(self, request: Request, place: CallPlace, completion: Completion) -> None:
        """Store a reply."""


class ResponseCache:
    """The reply cache that runs share, in a SQLite file.

    Only replies of models are cached. The replies of a user's own function or graph depend on code that may have
    changed, which cannot be detected. The offline models are part of dialoom, and their replies depend on the role and
    the prompt as well as on the messages, so dialoom's version, the role and the prompt are part of their cache keys.

    Args:
        path: The file; created if it does not exist.

    Raises:
        CacheError: If the file cannot be opened, or is not a cache.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # One thread, so that waiting for another process's transaction does not block the event loop.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dialoom-cache")
        try:
            self._connection = self._thread.submit(self._convert_errors, lambda: _connect(path)).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish pending work and close the file."""
        self._thread.submit(self._connection.close).result()
        self._thread.shutdown()

    async def find(self, request: Request, place: CallPlace) -> Completion | None:
        """Return the reply to a request that this or another run has cached; `None` if there is none.

        Raises:
            CacheError: If the file cannot be read.
        """
        if not is_cacheable(request):
            return None
        return await self.find_by_key(cache_key(request, place))

    async def find_by_key(self, key: bytes) -> Completion | None:
        """Return the reply stored under a `cache_key`; `None` if there is none.

        Raises:
            CacheError: If the file cannot be read.
        """
        row = await self._run_in_thread(lambda: self._connection.execute(_FIND_REPLY, (key,)).fetchone())
        return None if row is None else replace(deserialize_reply(Completion(*row[:-1])), changes=row[-1])

    async def store(self, request: Request, place: CallPlace, completion: Completion) -> None:
        """Store a reply, unless another process has already stored one, so that all later runs read the same reply.

        Raises:
            CacheError: If the file cannot be written.
        """
        if is_cacheable(request):
            await self.store_by_key(cache_key(request, place), request.model, completion)

    async def store_by_key(self, key: bytes, model: str, completion: Completion) -> None:
        """Store a reply under a `cache_key`.

        Raises:
            CacheError: If the file cannot be written.
        """
        row = (
            key,
            model,
            serialize_reply(completion),
            completion.input_tokens,
            completion.output_tokens,
            completion.cached_tokens,
            completion.cost,
            completion.finish_reason,
            completion.reasoning,
            int(time.time()),
            completion.changes,
        )
        await self._run_in_thread(lambda: self._connection.execute(_INSERT_REPLY, row))

    async def _run_in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._convert_errors, work)

    def _convert_errors(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            raise CacheError(f"the cache {self.path} cannot be used: {error}") from error


def check_cache(path: Path) -> None:
    """Check that a path can be used as a cache, without creating the file.

    Raises:
        CacheError: If the file is not a cache, or its folder does not exist.
    """
    if path.exists():
        ResponseCache(path).close()
    else:
        _check_folder(path)


def cache_key(request: Request, place: CallPlace) -> bytes:
    """Return a reply's cache key: the SHA-256 of everything that affects the reply.

    Of the call's place, it includes only the numbers `ask` and `sample`.
    """
    schema = None if request.reply_type is None else _schema(request.reply_type)
    offline_identity = (
        [__version__, request.role, request.prompt_id] if request.model.startswith(OFFLINE_PREFIX) else None
    )
    content = [
        [request.model, offline_identity, request.api_base],
        [request.temperature, schema, *request.reply_settings],
        [request.seed, place.ask, place.sample],
        [message_identity(message) for message in request.messages],
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).digest()


@functools.cache
def _schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    return reply_type.model_json_schema()


def is_cacheable(request: Request) -> bool:
    """Return whether the reply to a request may be cached; replies of the user's own code may not, as it can change."""
    return not request.model.startswith(_USER_CODE_PREFIXES)


def _connect(path: Path) -> sqlite3.Connection:
    _check_folder(path)
    # The connection is used and closed only in the cache's thread.
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        _create_table(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_folder(path: Path) -> None:
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise CacheError(
            f"cache {str(path)!r} has a special meaning for SQLite; give the path of a file", setting="cache"
        )
    if path.exists():
        check_regular(path)
    if not path.parent.is_dir():
        raise CacheError(f"the cache {path} cannot be created: there is no folder {str(path.parent)!r}")


def _create_table(connection: sqlite3.Connection, path: Path) -> None:
    """Create the table in an empty file, exactly once even if several processes try."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application == version == connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            connection.execute(_CREATE_REPLIES)
        elif application != _APPLICATION_ID:
            raise CacheError(
                f"cache {path}: this SQLite file is not a cache of dialoom; give another file", setting="cache"
            )
        elif version != _SCHEMA_VERSION:
            raise CacheError(f"the cache {path} was created by another version of dialoom; give another file")
    connection.execute("PRAGMA journal_mode = WAL")
    # After a power failure, the last entries may be missing, so that their calls are made again; the file stays
    # consistent.
    connection.execute("PRAGMA synchronous = NORMAL")


_CREATE_REPLIES = """
CREATE TABLE replies (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cached_tokens INTEGER, cost REAL, finish_reason TEXT, reasoning TEXT, kept_at INTEGER NOT NULL,
    changes TEXT)"""
_FIND_REPLY = """
SELECT reply, input_tokens, output_tokens, cached_tokens, cost, finish_reason, reasoning, changes
FROM replies WHERE key = ?"""
_INSERT_REPLY = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


_CLAUDE_HOSTS = frozenset({"bedrock", "bedrock_converse", "vertex_ai", "vertex_ai_beta", "openrouter", "azure_ai"})


@functools.cache
def needs_cache_markers(litellm: ModuleType, model: str) -> bool:
    """Return whether the model's provider caches only marked prefixes: Anthropic, directly or through another host.

    Other providers cache prefixes without markers, or not at all.
    """
    name, provider, *_ = litellm.get_llm_provider(model)
    if provider == "anthropic":
        return True
    return provider in _CLAUDE_HOSTS and "claude" in name and bool(litellm.utils.supports_prompt_caching(model))


def add_cache_markers(
    messages: tuple[ChatMessage, ...], model: str = "", is_growing: bool = False
) -> list[dict[str, Any]]:
    """Return the messages with cache markers at the ends of stable prefixes; adjacent messages of a role are joined.

    There are two markers: one after the instructions, which all calls of a scenario share, and one after the last
    message but one, where the prefix of this role's next request ends. If a marker would fall on a tool call or a tool
    output, the message before it is marked.

    Args:
        messages: The messages.
        model: The model that is called.
        is_growing: Whether the next request will begin with all messages of this one, as it does for an agent with
            tools.
    """
    last_system = max((index for index, message in enumerate(messages) if message["role"] == "system"), default=-1)
    stable = messages if is_growing else messages[:-1]
    last_stable = max((index for index, message in enumerate(stable) if not is_tool_message(message)), default=-1)
    return convert_messages(messages, model, {last_system, last_stable})
