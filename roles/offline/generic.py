"""The generic assistant: polite and readable, and blind to the person and the context."""

from __future__ import annotations

from .draws import Draws
from .grammar import render_first
from .prose import tidy
from .replyphrases import DEFAULTS, GENERIC_AGAIN, GENERIC_CLOSE, GENERIC_MORE, GENERIC_OPEN
from .scene import Scene, slots_of, understand
from .tags import Request


def generic_reply(request: Request, stable: Draws, wording: Draws) -> str:
    """Write the next reply without any regard to who is asking."""
    request.summaries, request.situation, request.demographics = {}, {}, {}
    scene = understand(request)
    if scene.closing:
        return wording.pick(GENERIC_CLOSE)
    text = ""
    for attempt in range(4):
        text = tidy(_reply(scene, stable, wording.fork(attempt)))
        if text not in scene.own_lines:
            break
    return text


def _reply(scene: Scene, stable: Draws, draws: Draws) -> str:
    # It stays with the first matter about as often as not, whatever the user has moved on to.
    stays = stable.fork("stays").chance(0.35)
    domain = scene.history[0] if stays else scene.current
    turn = len(scene.own_lines)
    helps = stable.fork("helps", domain.name).chance(0.5)
    if turn and helps and (scene.visits or draws.chance(0.4)):
        slots = slots_of(scene, domain, {}, stable.fork("offer", domain.name))
        slots |= DEFAULTS.get(domain.name, {})
        done = render_first(domain.done[""], slots, draws)
        return " ".join(part for part in (draws.pick(GENERIC_AGAIN), done) if part)
    lead = draws.pick(GENERIC_AGAIN if turn else GENERIC_OPEN)
    fresh = [text for text in domain.bland if not any(text in line for line in scene.own_lines)]
    body = draws.pick(fresh or GENERIC_MORE)
    tail = draws.pick(GENERIC_MORE) if draws.chance(0.4) else ""
    return " ".join(part for part in (lead, body, tail if tail not in body else "") if part)
