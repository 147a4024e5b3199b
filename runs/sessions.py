"""The session of a conversation in a run, which its players learn about."""

from __future__ import annotations

from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithFacets
from dialoom.graphs.outcome import TRIAL
from dialoom.roles.session import Session, session_id

from .store import PlayWork, RunFile, Work
from .store.branches import MAIN


def session_of(store: RunFile, recipe: Recipe, work: Work, branch: str = MAIN, sample: int | None = None) -> Session:
    """Return the session of a scenario's conversation.

    A person is one value of the facet by which exports are split; in a recipe without such a facet, each scenario has a
    person of its own.

    Args:
        store: The run.
        recipe: Its recipe.
        work: The scenario that is played or judged.
        branch: The branch of the step debugger.
        sample: The sample number, if it is not that of the work: a conversation that is played again has a new id.
    """
    facet = WithFacets.of(recipe).split_facet
    person = work.scenario.facets().get(facet, work.scenario.id) if facet else work.scenario.id
    trial = int(work.id.rpartition(TRIAL)[2]) if TRIAL in work.id else 1
    own = work.sample if sample is None and isinstance(work, PlayWork) else sample or 0
    number = work.session if isinstance(work, PlayWork) else 1
    return Session(
        conversation=session_id("conversation", store.id, work.thread, branch, own),
        person=session_id("person", store.id, person, trial),
        number=number,
        trial=trial,
    )
