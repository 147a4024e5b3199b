"""The application that answers: a route for each page, and the style sheet."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from nicegui import ui

from .page import Page, View
from .pages import PAGES
from .shell import show
from .studio import Studio

_STYLES = sorted(Path(__file__).parent.glob("*.css"), key=lambda each: (each.stem != "studio", each.stem))
"""The studio's own first, then those of single pages."""
_PATIENCE = 60.0
"""Seconds that making a page may take."""


def build(studio: Studio) -> Any:
    """The application (ASGI) that shows a studio; one in a process, as the library has one."""
    style = f"/studio-{hashlib.sha256(_styles().encode()).hexdigest()[:12]}.css"
    application = FastAPI(openapi_url=None)
    application.add_api_route(style, _style)
    for page in PAGES:
        _add(page, studio, style)
    ui.run_with(application, dark=None, tailwind=False, language="en-US", show_welcome_message=False)
    return application


def _add(page: Page, studio: Studio, style: str) -> None:
    async def shown(request: Request) -> None:
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        await show(page, View(studio, dict(request.path_params), query), PAGES, style)

    ui.page(page.path, title=f"{page.title} · dialoom", response_timeout=_PATIENCE)(shown)


def _style() -> Response:
    return Response(_styles(), media_type="text/css", headers={"cache-control": "max-age=31536000, immutable"})


def _styles() -> str:
    return "\n".join(each.read_text(encoding="utf-8") for each in _STYLES)
