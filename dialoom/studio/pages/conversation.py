"""A conversation: its messages and, beside them, the person and the task, the judgements, and a box to label them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from dialoom.errors import DialoomError
from dialoom.graphs import DialogueFault, Outline
from dialoom.graphs.outcome import count_dialogue_faults
from dialoom.roles.gateway.calls import BROKEN_OFF
from dialoom.runs.reading.conversations import Conversation, Item, SpokenMessage
from dialoom.runs.report.health import Health
from dialoom.runs.store import Neighbours
from dialoom.studio.calls import call_fold, figures
from dialoom.studio.labelling import JudgementBox, after_this, badge_of, lacks_its_judgements
from dialoom.studio.page import Page, View
from dialoom.studio.parts import definitions, element, folded, late, link, text, verbatim, written
from dialoom.studio.shell import listen
from dialoom.studio.wording import is_blind, list_of, list_parameters, query_of
from dialoom.text import counted

PATH = "/runs/{run}/scenarios/{scenario}"
STEP_PATH = f"{PATH}/step"
_MANY, _ENDS = 120, 40
"""If there are more messages than the first number, only the second number at either end is shown at once."""
_WORDS = 3
"""A text with at least this number of spaces counts as a description instead of a name."""
_LONG_NOTE = 400
"""The minimum length in characters of a tool's output (or other text outside the conversation) that is folded."""

_Marks: TypeAlias = Mapping[str, Health]
"""The health of the judge by subject, which marks its scores; `None` if the scores are hidden."""


async def build(view: View) -> None:
    """Build the page."""
    run = view.run.run
    if lacks_its_judgements(view):
        return
    shown, beside, after = await asyncio.gather(
        asyncio.to_thread(run.conversation, view.scenario, view.one("judging") or None),
        _neighbours(view),
        _to_label(view),
    )
    health = {} if shown.judging is None else await view.run.judge_health(shown.judging)
    text("h1", f"Conversation {shown.scenario.id}", "hidden-label")
    _head(view, shown, beside or Neighbours(*_in_the_plan(shown)), beside is not None)
    with element("div", "talk"):
        with element("section", "lines", aria_label="Messages"):
            _lines(view, shown, health)
        with element("aside", "beside", aria_label="About this conversation"):
            _about(shown)
            JudgementBox(view, shown, run.judgement_sets, health, after).build()
            _shown_to(view, shown)
            _calls(view, shown)
    listen()


async def _neighbours(view: View) -> Neighbours | None:
    """Return the neighbours in the list that the address selects; `None` for the whole plan, or without neighbours."""
    if not list_of(view):
        return None
    query = await asyncio.to_thread(query_of, view, view.run.run.position(view.scenario))
    return await asyncio.to_thread(view.run.run.neighbours, view.scenario, query, **view.selection)


async def _to_label(view: View) -> int | None:
    """Return the next scenario to label; if the labels file is unreadable, the labelling box reports the error."""
    if not view.one("as"):
        return None
    with suppress(DialoomError):
        return await asyncio.to_thread(after_this, view)
    return None


def _in_the_plan(shown: Conversation) -> tuple[int | None, int | None, int, int]:
    position, count = shown.number - 1, shown.of
    return position - 1 if position else None, position + 1 if shown.number < count else None, shown.number, count


def _head(view: View, shown: Conversation, beside: Neighbours, is_chosen: bool) -> None:
    """Add the scenario's position in the list, and its ending."""
    episode = shown.episode
    with element("div", "row-of head"):
        place = f"{beside.place:,} of {beside.total:,}"
        text("div", f"{place} selected, number {shown.number:,}" if is_chosen else place, "number quiet")
        ended = episode.outcome.ended_by or {"pending": "not finished yet"}.get(episode.state, episode.state)
        text("div", ended.replace("_", " "), f"badge {'bad' if episode.state == 'failed' else ''}")
        if episode.branch is not None:
            text("div", episode.branch.summary(), "badge accent")
        if count := count_dialogue_faults(episode.outcome.faults or ()):
            text("div", counted(count, "faults"), "badge warn")
        text("div", _taken(shown), "quiet small number")
        with element("nav", "row-of push", aria_label="Other conversations"):
            if is_chosen or view.one("as"):
                link("Back to list", view.path("/runs/{run}/scenarios", list_parameters(view)))
            for label, position, rel in (("← Previous", beside.before, "prev"), ("Next →", beside.after, "next")):
                if position is not None:
                    link(label, view.path(PATH, list_parameters(view), scenario=position + 1), "button", rel=rel)
    if episode.error:
        verbatim(episode.error, "said problem")


def _taken(shown: Conversation) -> str:
    calls = [call for call in shown.calls if call["judging"] is None and call["branch"] is None]
    tokens = [(call["input_tokens"], call["output_tokens"]) for call in calls if call["reply"] is not None]
    costs = [call["cost"] for call in calls if call["reply"] is not None]
    total = sum((one or 0) + (other or 0) for one, other in tokens)
    usage = "tokens unknown" if any(None in pair for pair in tokens) else f"{total:,} tokens"
    cost = "price unknown" if None in costs else f"${sum(costs):,.4f}"
    return f"{counted(len(calls), 'calls')} · {usage} · {cost}"


def _lines(view: View, shown: Conversation, health: _Marks) -> None:
    if not shown.messages and shown.outline is not None:
        outline_lines(shown.outline)
    elif not shown.messages:
        text("div", "Nothing has been said yet.", "empty")
    sides, marks = _sides(shown), None if is_blind(view) else health
    if len(shown.messages) <= _MANY:
        _messages(view, shown, shown.messages, sides, marks)
    else:
        _messages(view, shown, shown.messages[:_ENDS], sides, marks)
        middle = shown.messages[_ENDS:-_ENDS]
        late(f"{len(middle):,} messages in between", lambda: _messages(view, shown, middle, sides, marks))
        _messages(view, shown, shown.messages[-_ENDS:], sides, marks)
    for fault in shown.faults:
        fault_line(fault)


def _messages(
    view: View, shown: Conversation, messages: Sequence[SpokenMessage], sides: Mapping[str, str], health: _Marks | None
) -> None:
    with written("div", "as-is"):
        for message in messages:
            _message(view, shown, message, sides.get(message.line.role, "note"), health)


def _sides(shown: Conversation) -> dict[str, str]:
    """Return the side of the message bubbles of each role that a model plays; the first role is on the right."""
    speakers = dict.fromkeys(each.line.role for each in shown.messages if each.call is not None)
    speakers |= dict.fromkeys(each.line.role for each in shown.messages if each.line.role in ("user", "assistant"))
    others = [role for role in speakers if role != "user"]
    first = "user" if "user" in speakers else (others.pop(0) if len(others) > 1 else "")
    return {**dict.fromkeys(others, "left"), **({first: "right"} if first else {}), "tool": "tool"}


def _message(view: View, shown: Conversation, message: SpokenMessage, side: str, health: _Marks | None) -> None:
    line = message.line
    classes = f"message {'tool' if line.tool_call_id is not None else side}"
    with element(
        "article", classes, id=f"m{message.place + 1}", tabindex="0", aria_label=f"Message {message.place + 1}"
    ):
        with element("div", "meta"):
            text("div", line.role, "who")
            link(f"{message.place + 1}", f"#m{message.place + 1}", "place")
            if message.call is not None:
                text("div", figures(message.call), "number taken")
                branch = "" if shown.episode.branch is None else shown.episode.branch.name
                before = {"branch": branch, "before": str(message.call["step"])}
                link(
                    "edit", view.path(STEP_PATH, {**list_parameters(view), **before}), "change", title="step from here"
                )
        words = line.spoken
        is_long = side in ("note", "tool") and len(words) > _LONG_NOTE
        with folded(" ".join(words[:120].split()) + " …", "bubble") if is_long else element("div", "bubble"):
            verbatim(words, "said", [fault.words for fault in message.faults])
        if line.finish_reason is not None:
            text("div", f"({BROKEN_OFF.get(line.finish_reason, line.finish_reason)})", "quiet small")
        for fault in message.faults:
            fault_line(fault)
        if health is not None:
            for item in message.judged:
                _judged(item, health)
        if message.call is not None:
            call_fold(view.run.run, "View call", message.call, shown.call_before(message.call))


def _judged(item: Item, health: _Marks) -> None:
    judgement = item.judgement
    word, why = badge_of(judgement, health)
    with folded(f"{judgement.metric} {word}", "judged"):
        verbatim(judgement.explanation or "no explanation", "said small")
        if why:
            text("div", why, "quiet small")


def fault_line(fault: DialogueFault) -> None:
    """Add a fault: its role, kind and certainty, and the text that is evidence of it."""
    with element("div", "fault"):
        text("span", fault.kind.replace("_", " "), "badge warn")
        place = f" after {fault.where}" if fault.where else ""
        sure = "" if fault.sureness == 1 else f", {fault.sureness:.0%} sure"
        text("span", f"of the {fault.who}{place}{sure}", "small quiet")
        if fault.words:
            text("span", " ".join(fault.words.split()), "small said")


def outline_lines(outline: Outline) -> None:
    """Add an outline as lines, each indented by its level."""
    with element("div", "outline"):
        with element("div", "line said"):
            for span in outline.spans:
                text("span", span.text, f"span {span.style}")
        for part in outline.parts:
            outline_lines(part)


def _about(shown: Conversation) -> None:
    """Add the person, the task and the situation."""
    with element("section", "card about", tabindex="0", aria_label="Scenario"):
        text("h2", "Scenario")
        described = shown.scenario.described()
        in_words = {
            name: value
            for name, value in described.items()
            if isinstance(value, Mapping) or (isinstance(value, str) and value.count(" ") >= _WORDS)
        }
        facts = {**shown.scenario.portrait(), **in_words}
        definitions({name: _in_a_line(value) for name, value in facts.items()})
        if preferences := shown.scenario.preferences():
            text("h3", f"{len(preferences)} preferences")
            definitions(dict(preferences))
        definitions({name: value for name, value in described.items() if facts.get(name) != value})
        late("Scenario data", lambda: definitions(shown.scenario.model_dump(mode="json")))


def _in_a_line(value: Any) -> Any:
    """Join the values of a mapping, if all are strings, into one string without their keys."""
    if isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
        return ", ".join(dict.fromkeys(each for each in value.values() if each))
    return value


def _shown_to(view: View, shown: Conversation) -> None:
    """Add the first request of each role."""
    first = shown.first_calls()
    if is_blind(view):
        roles = {each.line.role for each in shown.messages}
        first = {role: call for role, call in first.items() if role in roles}
    if not first:
        return
    with element("section", "card"):
        text("h2", "Initial prompts")
        for role, call in first.items():
            call_fold(view.run.run, f"First request to {role}", call, None)


def _calls(view: View, shown: Conversation) -> None:
    """Add every call, including those of judges and of branches."""
    calls = list(shown.calls)
    if is_blind(view):
        ids = {each.call["call"] for each in shown.messages if each.call is not None}
        calls = [call for call in calls if call["call"] in ids]

    def fill() -> None:
        with written("div", "stack"):
            for call in calls:
                call_fold(view.run.run, _named(call), call, shown.call_before(call))

    with element("section", "card"):
        late(f"All calls ({len(calls)})", fill)


def _named(call: Mapping[str, Any]) -> str:
    parts = [call["role"] if call["node"] in (call["role"], None) else f"{call['role']} in {call['node']}"]
    parts += [f"asked again ({call['ask']})"] if call["ask"] > 1 else []
    parts += [f"judging {call['judging']!r}"] if call["judging"] is not None else []
    parts += [f"branch {call['branch']!r}"] if call["branch"] is not None else []
    parts += ["no reply"] if call["reply"] is None else []
    return ", ".join(parts)


PAGE = Page(PATH, "Conversation", "scenario", build)
