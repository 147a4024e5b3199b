"""Forks of a scenario's branches, and the record of the main branch's calls before others are made beside them."""

from __future__ import annotations

import re
from dataclasses import replace

from dialoom.runs.store.branches import Branch

from .context import PlayableContext
from .gateway import SteppingError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


async def fork_branch(context: PlayableContext, branch: Branch, head: str, name: str) -> Branch:
    """Create a branch that begins at a checkpoint of another one.

    Args:
        context: The scenario.
        branch: The branch that is forked.
        head: The checkpoint's id.
        name: The new branch's name.

    Raises:
        SteppingError: If the name is taken or invalid.
    """
    if not _NAME.fullmatch(name):
        raise SteppingError(f"{name!r} is no name for a branch; letters, digits, '-' and '_' are")
    if any(each.name == name for each in context.branches()):
        raise SteppingError(f"there is a branch {name!r} already; switch to it, or give another name")
    await index_main(context)
    thread = f"{context.work.thread}~{name}"
    saver = context.graph.checkpointer
    assert saver is not None and not isinstance(saver, bool)
    await saver.adelete_thread(thread)  # left over from a fork that was killed halfway
    await saver.acopy_thread(branch.thread, thread)
    await context.store.branches.keep_only(thread, [point.id for point in context.line(head)])
    forked = replace(branch, name=name, thread=thread, head=head, origin=branch.name)
    await context.store.branches.keep(context.work.position, forked)
    return forked


async def index_main(context: PlayableContext) -> None:
    """Record which calls led to the engine's checkpoints, before a fork adds others."""
    position = context.work.position
    if (end := context.latest(context.work.thread)) is None:
        return
    line, known = context.line(end), context.store.branches.indexed(position)
    led = {
        line[length - 1].id: [(call.node, call.key, call.is_edited) for call in await context.calls(line[:length])]
        for length in range(2, len(line) + 1)
        if line[length - 1].id not in known
    }
    await context.store.branches.keep_calls(position, led)
