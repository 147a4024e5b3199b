"""The web application: a route for each page, and the style sheet."""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.middleware import Middleware
from fastapi.responses import Response
from nicegui import __version__, ui
from nicegui import app as library

from .access import Application, Receive, Scope, Send
from .page import Page, View
from .pages import PAGES
from .shell import show
from .studio import Studio

_STYLES = sorted(Path(__file__).parent.glob("*.css"), key=lambda each: (each.stem != "studio", each.stem))
"""The style sheets: first the one of the whole studio, then those of single pages."""
_PATIENCE = 60.0
"""The time limit for building a page, in seconds."""
_OF_LIBRARY = f"/_nicegui/{__version__}/"
_CACHED = {"cache-control": "max-age=31536000, immutable"}


def build(studio: Studio) -> Any:
    """Return the application (ASGI) that shows a studio. The library supports only one application per process."""
    style = f"/studio-{hashlib.sha256(_styles().encode()).hexdigest()[:12]}.css"
    application = FastAPI(openapi_url=None)
    application.add_api_route(style, _style)
    for page in PAGES:
        _add(page, studio, style)
    # Responses are not compressed, because compression only costs time on the local machine.
    ui.run_with(
        application,
        dark=None,
        tailwind=False,
        language="en-US",
        show_welcome_message=False,
        gzip_middleware_factory=None,
    )
    # The UI library's middleware logs a traceback if a browser disconnects before it gets a response, so it is removed.
    # `_Keeping` replaces the only part of it that is needed.
    others = [each for each in library.user_middleware if not hasattr(each.cls, "dispatch")]
    library.user_middleware[:] = [*others, Middleware(_Keeping)]
    return application


class _Keeping:
    """A middleware that lets browsers cache the library's files, whose addresses contain its version."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and add a header that states how long the answer may be cached."""
        path = scope.get("path", "")
        is_kept = path.startswith(_OF_LIBRARY) and not path.startswith(f"{_OF_LIBRARY}dynamic_resources/")
        caching = [(name.encode(), value.encode()) for name, value in _CACHED.items()] if is_kept else []

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *caching]}
            await send(message)

        await self._app(scope, receive, sent)


def _add(page: Page, studio: Studio, style: str) -> None:
    async def shown(request: Request) -> None:
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        await show(page, View(studio, dict(request.path_params), query, page.path), PAGES, style)

    ui.page(page.path, response_timeout=_PATIENCE)(shown)


def _style() -> Response:
    return Response(_styles(), media_type="text/css", headers=_CACHED)


def _styles() -> str:
    return "\n".join(each.read_text(encoding="utf-8") for each in _STYLES)
