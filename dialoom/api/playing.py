"""Playing of the pending scenarios of a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Sequence

from dialoom.graphs.capabilities import WithFacets
from dialoom.graphs.judge import Graph
from dialoom.graphs.simulation import SimulatedTalk, Simulation
from dialoom.graphs.tables.diversity import Opening, find_opening, find_repeated_openings
from dialoom.graphs.tool_use import list_mcp_servers
from dialoom.roles.players import can_forget_person
from dialoom.runs.configuration.recipe_checks import build_graph
from dialoom.runs.configuration.trust import server_references
from dialoom.runs.control import Ended, Notice, Retrying, Started
from dialoom.runs.gateway_setup import check_model_access, check_workers, open_gateway
from dialoom.runs.store import RunStore

from .judges import add_counts
from .judging import judge_by_panel
from .open_run import OpenRun, carry_out, retry_failures


async def play_pending(opened: OpenRun, is_resumed: bool, only: Collection[int] | None = None) -> Ended:
    """Play the pending scenarios or, if positions are given, only the pending scenarios at those positions."""
    store, recipe = opened.store, opened.recipe
    graph = build_graph(recipe, store.config.options)
    pending = store.status().pending if only is None else len(only)
    if pending:
        await _ensure_callable(opened)
        await asyncio.to_thread(store.keep_changed_code)
        if is_resumed:
            await asyncio.to_thread(_report_lost_memory, opened, only)
    opened.tell(Started(store.path, "playing", pending))
    if pending:
        work = store.queue.pending(recipe, only, None if opened.policy.is_alone else WithFacets.of(recipe).length_facet)
        ended = await carry_out(opened, graph, store.config.models, work, None, is_resumed, _list_servers(opened))
    else:  # LiteLLM, which takes seconds to import, is not needed
        ended = Ended(store.path, 0, 0, is_complete=True)
        opened.tell(ended)
    return await judge_by_panel(opened, await _redraw_repeated_openings(opened, graph, ended))


async def ensure_playable(opened: OpenRun) -> None:
    """Check that everything that playing needs can be loaded, before the plan is changed for it.

    Raises:
        RunError, BindingError, CacheError: If a key, a player, the cache or anything else is missing or wrong.
        TrustError: If an MCP server is named only by the author of the run's file.
    """
    store, policy = opened.store, opened.policy
    await _ensure_callable(opened)
    check_workers(_list_servers(opened), store.config.players, policy)

    def load() -> None:
        with open_gateway(store, policy) as gateway:
            gateway.prepare([each for cast in store.config.players for each in cast.values()])

    await asyncio.to_thread(load)


async def _ensure_callable(opened: OpenRun) -> None:
    """Check that the MCP servers may be used, and that the models of every role can be called."""
    opened.store.ensure_trusted(server_references(_list_servers(opened)))
    await asyncio.to_thread(check_model_access, opened.store.config.players, opened.policy)


def _list_servers(opened: OpenRun) -> Sequence[str]:
    """Return the MCP servers of a run."""
    recipe = opened.recipe
    return list_mcp_servers(recipe, recipe.options_type.model_validate(opened.store.config.options))


def _report_lost_memory(opened: OpenRun, only: Collection[int] | None) -> None:
    """Report and save the conversations before which a stateful player may have lost its state with its process."""
    stateful = {binding.model for cast in opened.store.config.casts for binding in cast.values() if binding.stateful}
    if not any(can_forget_person(model, opened.policy.objects) for model in stateful):
        return
    continued = opened.store.queue.continued()
    if affected := continued if only is None else continued.intersection(only):
        opened.store.keep_forgotten(affected)
        lost = "a stateful player without snapshots may have lost what it knew of the person's earlier conversations"
        opened.tell(Notice(f"in {len(affected):,} conversations, {lost}"))


async def _redraw_repeated_openings(opened: OpenRun, graph: Graph, ended: Ended) -> Ended:
    """Play a study's conversations again whose openings nearly repeat the opening of an earlier one of the same task.

    This is done only if the study requests it. It begins when no scenario is pending, and each round is one
    transaction. Therefore, neither the order of completion nor interruptions affect which conversations are played
    again.
    """
    store, recipe = opened.store, opened.recipe
    if not isinstance(recipe, Simulation) or not recipe.study.variety.redraws:
        return ended
    variety = recipe.study.variety
    while ended.is_complete and not store.status().pending:
        positions = await asyncio.to_thread(
            lambda: find_repeated_openings(_iter_openings(store, recipe), variety.redraws, variety.similarity)
        )
        if not positions:
            break
        note = (
            "conversations played again, because their openings nearly repeated that of an earlier conversation with "
            f"the same task: {len(positions):,}"
        )
        store.retries.restart_scenarios(positions, note)
        opened.tell(Notice(note))
        opened.tell(Started(store.path, "playing", len(positions)))
        work = store.queue.pending(recipe, None, None if opened.policy.is_alone else WithFacets.of(recipe).length_facet)
        ended = add_counts(ended, await carry_out(opened, graph, store.config.models, work, None, True))
    return ended


def _iter_openings(store: RunStore, recipe: Simulation) -> Iterator[Opening]:
    """Yield the openings of the finished conversations, in the order of the plan."""
    times = store.samples()
    for position, id_, state, _ in store.listing():
        if state == "done":
            talk = store.scenario(recipe, position)
            assert isinstance(talk, SimulatedTalk)
            trial = id_.removeprefix(talk.id)  # trials are independent and may have similar openings
            task = json.dumps([trial, talk.task], sort_keys=True)
            yield Opening(position, task, find_opening(store.outcome(position)), times[position])


async def play_again(opened: OpenRun, is_failed: bool, scenarios: Collection[str | int]) -> Ended:
    """Resume failed scenarios and play the given ones from their beginning; other pending scenarios are not played."""
    store = opened.store
    restarted = {store.resolve(str(name)) for name in scenarios}
    failed = set(store.positions("failed")) if is_failed else set()
    if any(binding.stateful for cast in store.config.casts for binding in cast.values()) and (
        later := store.queue.later(restarted)
    ):
        note = "later conversations of the same people, played again because a player remembers the earlier ones"
        opened.tell(Notice(f"{note}: {len(later):,}"))
        restarted |= later
    if restarted or failed:
        await ensure_playable(opened)
    if is_failed:
        retry_failures(opened)
        failed -= set(store.positions("failed"))
    store.retries.restart_scenarios(sorted(restarted))
    if restarted:
        opened.tell(Retrying(anew=len(restarted)))
    return await play_pending(opened, is_resumed=True, only=restarted | failed)
