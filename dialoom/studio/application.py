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
from .shell import build_page
from .studio import Studio

_STYLE_SHEETS = sorted(Path(__file__).parent.glob("*.css"), key=lambda each: (each.stem != "studio", each.stem))
"""The style sheets: first the one of the whole studio, then those of single pages."""
_BUILD_TIMEOUT_SECONDS = 60.0
"""The time limit for building a page, in seconds."""
_LIBRARY_PREFIX = f"/_nicegui/{__version__}/"
_CACHE_HEADERS = {"cache-control": "max-age=31536000, immutable"}


def build_application(studio: Studio) -> Any:
    """Return the application (ASGI) that shows a studio. The library supports only one application per process."""
    style_url = f"/studio-{hashlib.sha256(_read_style_sheets().encode()).hexdigest()[:12]}.css"
    application = FastAPI(openapi_url=None)
    application.add_api_route(style_url, _get_style_sheet)
    for page in PAGES:
        _add_route(page, studio, style_url)
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
    # `_CacheMiddleware` replaces the only part of it that is needed.
    kept = [each for each in library.user_middleware if not hasattr(each.cls, "dispatch")]
    library.user_middleware[:] = [*kept, Middleware(_CacheMiddleware)]
    return application


class _CacheMiddleware:
    """A middleware that lets browsers cache the library's files, whose addresses contain its version."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and add a header that states how long the answer may be cached."""
        path = scope.get("path", "")
        is_cacheable = path.startswith(_LIBRARY_PREFIX) and not path.startswith(f"{_LIBRARY_PREFIX}dynamic_resources/")
        cache_headers = (
            [(name.encode(), value.encode()) for name, value in _CACHE_HEADERS.items()] if is_cacheable else []
        )

        async def send_with_caching(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *cache_headers]}
            await send(message)

        await self._app(scope, receive, send_with_caching)


def _add_route(page: Page, studio: Studio, style_url: str) -> None:
    async def show_page(request: Request) -> None:
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        await build_page(page, View(studio, dict(request.path_params), query, page.path), PAGES, style_url)

    ui.page(page.path, response_timeout=_BUILD_TIMEOUT_SECONDS)(show_page)


def _get_style_sheet() -> Response:
    return Response(_read_style_sheets(), media_type="text/css", headers=_CACHE_HEADERS)


def _read_style_sheets() -> str:
    return "\n".join(each.read_text(encoding="utf-8") for each in _STYLE_SHEETS)
