"""A conversation: its messages and, beside them, the person and the task, the judgements, and a box to label them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from dialoom.errors import DialoomError
from dialoom.graphs import DialogueFault, Outline
from dialoom.graphs.outcome import count_dialogue_faults
from dialoom.roles.gateway.calls import INCOMPLETE_REASONS
from dialoom.runs.reading.conversations import Conversation, Item, SpokenMessage
from dialoom.runs.report.health import Health
from dialoom.runs.store import Neighbours
from dialoom.studio.calls import add_call, format_figures
from dialoom.studio.components import definition_list, details, element, fragment, lazy_details, link, text, verbatim
from dialoom.studio.labelling import JudgementBox, find_next_unlabelled, format_badge, show_missing_judgements_notice
from dialoom.studio.page import Page, View
from dialoom.studio.queries import build_query, get_list_query, get_navigation_query, is_blind
from dialoom.studio.shell import add_keyboard_shortcuts
from dialoom.text import pluralize

PATH = "/runs/{run}/scenarios/{scenario}"
STEP_PATH = f"{PATH}/step"
_MAX_INITIAL_MESSAGES, _END_MESSAGES = 120, 40
"""If there are more messages than the first number, only the second number at either end is shown at once."""
_MIN_DESCRIPTION_SPACES = 3
"""A text with at least this number of spaces counts as a description instead of a name."""
_MIN_FOLDED_CHARACTERS = 400
"""The minimum length in characters of a tool's output (or other text outside the conversation) that is folded."""

_HealthBySubject: TypeAlias = Mapping[str, Health]
"""The health of the judge by subject, which marks its scores; `None` if the scores are hidden."""


async def build(view: View) -> None:
    """Build the page."""
    run = view.run.run
    if show_missing_judgements_notice(view):
        return
    conversation, neighbours, next_position = await asyncio.gather(
        asyncio.to_thread(run.conversation, view.scenario, view.get("judging") or None),
        _find_neighbours(view),
        _find_next_to_label(view),
    )
    health = {} if conversation.judging is None else await view.run.judge_health(conversation.judging)
    text("h1", f"Conversation {conversation.scenario.id}", "hidden-label")
    _add_head(
        view, conversation, neighbours or Neighbours(*_find_plan_neighbours(conversation)), neighbours is not None
    )
    with element("div", "talk"):
        with element("section", "lines", aria_label="Messages"):
            _add_lines(view, conversation, health)
        with element("aside", "beside", aria_label="About this conversation"):
            _add_scenario(conversation)
            JudgementBox(view, conversation, run.judgement_sets, health, next_position).build()
            _add_initial_prompts(view, conversation)
            _add_all_calls(view, conversation)
    add_keyboard_shortcuts()


async def _find_neighbours(view: View) -> Neighbours | None:
    """Return the neighbours in the list that the address selects; `None` for the whole plan, or without neighbours."""
    if not get_list_query(view):
        return None
    query = await asyncio.to_thread(build_query, view, view.run.run.position(view.scenario))
    return await asyncio.to_thread(view.run.run.neighbours, view.scenario, query, **view.selection)


async def _find_next_to_label(view: View) -> int | None:
    """Return the next scenario to label; if the labels file is unreadable, the labelling box reports the error."""
    if not view.get("as"):
        return None
    with suppress(DialoomError):
        return await asyncio.to_thread(find_next_unlabelled, view)
    return None


def _find_plan_neighbours(conversation: Conversation) -> tuple[int | None, int | None, int, int]:
    position, count = conversation.number - 1, conversation.total
    return (
        position - 1 if position else None,
        position + 1 if conversation.number < count else None,
        conversation.number,
        count,
    )


def _add_head(view: View, conversation: Conversation, neighbours: Neighbours, is_chosen: bool) -> None:
    """Add the scenario's position in the list, and its ending."""
    episode = conversation.episode
    with element("div", "row-of head"):
        place = f"{neighbours.place:,} of {neighbours.total:,}"
        text("div", f"{place} selected, number {conversation.number:,}" if is_chosen else place, "number quiet")
        ended = episode.outcome.ended_by or {"pending": "not finished yet"}.get(episode.state, episode.state)
        text("div", ended.replace("_", " "), f"badge {'bad' if episode.state == 'failed' else ''}")
        if episode.branch is not None:
            text("div", episode.branch.summary(), "badge accent")
        if count := count_dialogue_faults(episode.outcome.faults or ()):
            text("div", pluralize(count, "faults"), "badge warn")
        text("div", _format_totals(conversation), "quiet small number")
        with element("nav", "row-of push", aria_label="Other conversations"):
            if is_chosen or view.get("as"):
                link("Back to list", view.url_for("/runs/{run}/scenarios", get_navigation_query(view)))
            for label, position, rel in (
                ("← Previous", neighbours.before, "prev"),
                ("Next →", neighbours.after, "next"),
            ):
                if position is not None:
                    link(
                        label, view.url_for(PATH, get_navigation_query(view), scenario=position + 1), "button", rel=rel
                    )
    if episode.error:
        verbatim(episode.error, "said problem")


def _format_totals(conversation: Conversation) -> str:
    calls = [call for call in conversation.calls if call["judging"] is None and call["branch"] is None]
    tokens = [(call["input_tokens"], call["output_tokens"]) for call in calls if call["reply"] is not None]
    costs = [call["cost"] for call in calls if call["reply"] is not None]
    total = sum((one or 0) + (other or 0) for one, other in tokens)
    usage = "tokens unknown" if any(None in pair for pair in tokens) else f"{total:,} tokens"
    cost = "price unknown" if None in costs else f"${sum(costs):,.4f}"
    return f"{pluralize(len(calls), 'calls')} · {usage} · {cost}"


def _add_lines(view: View, conversation: Conversation, health: _HealthBySubject) -> None:
    if not conversation.messages and conversation.outline is not None:
        add_outline(conversation.outline)
    elif not conversation.messages:
        text("div", "Nothing has been said yet.", "empty")
    sides, marks = _assign_sides(conversation), None if is_blind(view) else health
    if len(conversation.messages) <= _MAX_INITIAL_MESSAGES:
        _add_messages(view, conversation, conversation.messages, sides, marks)
    else:
        _add_messages(view, conversation, conversation.messages[:_END_MESSAGES], sides, marks)
        middle = conversation.messages[_END_MESSAGES:-_END_MESSAGES]
        lazy_details(
            f"{len(middle):,} messages in between", lambda: _add_messages(view, conversation, middle, sides, marks)
        )
        _add_messages(view, conversation, conversation.messages[-_END_MESSAGES:], sides, marks)
    for fault in conversation.faults:
        add_fault(fault)


def _add_messages(
    view: View,
    conversation: Conversation,
    messages: Sequence[SpokenMessage],
    sides: Mapping[str, str],
    health: _HealthBySubject | None,
) -> None:
    with fragment("div", "as-is"):
        for message in messages:
            _add_message(view, conversation, message, sides.get(message.line.role, "note"), health)


def _assign_sides(conversation: Conversation) -> dict[str, str]:
    """Return the side of the message bubbles of each role that a model plays; the first role is on the right."""
    speakers = dict.fromkeys(each.line.role for each in conversation.messages if each.call is not None)
    speakers |= dict.fromkeys(
        each.line.role for each in conversation.messages if each.line.role in ("user", "assistant")
    )
    others = [role for role in speakers if role != "user"]
    first = "user" if "user" in speakers else (others.pop(0) if len(others) > 1 else "")
    return {**dict.fromkeys(others, "left"), **({first: "right"} if first else {}), "tool": "tool"}


def _add_message(
    view: View, conversation: Conversation, message: SpokenMessage, side: str, health: _HealthBySubject | None
) -> None:
    line = message.line
    classes = f"message {'tool' if line.tool_call_id is not None else side}"
    with element(
        "article", classes, id=f"m{message.index + 1}", tabindex="0", aria_label=f"Message {message.index + 1}"
    ):
        with element("div", "meta"):
            text("div", line.role, "who")
            link(f"{message.index + 1}", f"#m{message.index + 1}", "place")
            if message.call is not None:
                text("div", format_figures(message.call), "number taken")
                branch = "" if conversation.episode.branch is None else conversation.episode.branch.name
                before = {"branch": branch, "before": str(message.call["step"])}
                link(
                    "edit",
                    view.url_for(STEP_PATH, {**get_navigation_query(view), **before}),
                    "change",
                    title="step from here",
                )
        content = line.spoken
        is_long = side in ("note", "tool") and len(content) > _MIN_FOLDED_CHARACTERS
        with details(" ".join(content[:120].split()) + " …", "bubble") if is_long else element("div", "bubble"):
            verbatim(content, "said", [fault.excerpt for fault in message.faults])
        if line.finish_reason is not None:
            text("div", f"({INCOMPLETE_REASONS.get(line.finish_reason, line.finish_reason)})", "quiet small")
        for fault in message.faults:
            add_fault(fault)
        if health is not None:
            for item in message.judged:
                _add_judgement(item, health)
        if message.call is not None:
            add_call(view.run.run, "View call", message.call, conversation.call_before(message.call))


def _add_judgement(item: Item, health: _HealthBySubject) -> None:
    judgement = item.judgement
    word, why = format_badge(judgement, health)
    with details(f"{judgement.metric} {word}", "judged"):
        verbatim(judgement.explanation or "no explanation", "said small")
        if why:
            text("div", why, "quiet small")


def add_fault(fault: DialogueFault) -> None:
    """Add a fault: its role, kind and certainty, and the text that is evidence of it."""
    with element("div", "fault"):
        text("span", fault.kind.replace("_", " "), "badge warn")
        place = f" after {fault.where}" if fault.where else ""
        sure = "" if fault.confidence == 1 else f", {fault.confidence:.0%} sure"
        text("span", f"of the {fault.role}{place}{sure}", "small quiet")
        if fault.excerpt:
            text("span", " ".join(fault.excerpt.split()), "small said")


def add_outline(outline: Outline) -> None:
    """Add an outline as lines, each indented by its level."""
    with element("div", "outline"):
        with element("div", "line said"):
            for span in outline.spans:
                text("span", span.text, f"span {span.style}")
        for part in outline.parts:
            add_outline(part)


def _add_scenario(conversation: Conversation) -> None:
    """Add the person, the task and the situation."""
    with element("section", "card about", tabindex="0", aria_label="Scenario"):
        text("h2", "Scenario")
        described = conversation.scenario.described()
        descriptions = {
            name: value
            for name, value in described.items()
            if isinstance(value, Mapping) or (isinstance(value, str) and value.count(" ") >= _MIN_DESCRIPTION_SPACES)
        }
        facts = {**conversation.scenario.portrait(), **descriptions}
        definition_list({name: _join_texts(value) for name, value in facts.items()})
        if preferences := conversation.scenario.preferences():
            text("h3", f"{len(preferences)} preferences")
            definition_list(dict(preferences))
        definition_list({name: value for name, value in described.items() if facts.get(name) != value})
        lazy_details("Scenario data", lambda: definition_list(conversation.scenario.model_dump(mode="json")))


def _join_texts(value: Any) -> Any:
    """Join the values of a mapping, if all are strings, into one string without their keys."""
    if isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
        return ", ".join(dict.fromkeys(each for each in value.values() if each))
    return value


def _add_initial_prompts(view: View, conversation: Conversation) -> None:
    """Add the first request of each role."""
    first = conversation.first_calls()
    if is_blind(view):
        roles = {each.line.role for each in conversation.messages}
        first = {role: call for role, call in first.items() if role in roles}
    if not first:
        return
    with element("section", "card"):
        text("h2", "Initial prompts")
        for role, call in first.items():
            add_call(view.run.run, f"First request to {role}", call, None)


def _add_all_calls(view: View, conversation: Conversation) -> None:
    """Add every call, including those of judges and of branches."""
    calls = list(conversation.calls)
    if is_blind(view):
        ids = {each.call["call"] for each in conversation.messages if each.call is not None}
        calls = [call for call in calls if call["call"] in ids]

    def fill() -> None:
        with fragment("div", "stack"):
            for call in calls:
                add_call(view.run.run, _describe_call(call), call, conversation.call_before(call))

    with element("section", "card"):
        lazy_details(f"All calls ({len(calls)})", fill)


def _describe_call(call: Mapping[str, Any]) -> str:
    parts = [call["role"] if call["node"] in (call["role"], None) else f"{call['role']} in {call['node']}"]
    parts += [f"asked again ({call['ask']})"] if call["ask"] > 1 else []
    parts += [f"judging {call['judging']!r}"] if call["judging"] is not None else []
    parts += [f"branch {call['branch']!r}"] if call["branch"] is not None else []
    parts += ["no reply"] if call["reply"] is None else []
    return ", ".join(parts)


PAGE = Page(PATH, "Conversation", "scenario", build)
