"""Train and test splits by group: all that belongs to one persona or user is on one side.

Each group gets a random number from the run's seed, and those with the lowest are the test split. So every format of a
run is split alike, the test split of a smaller share is a subset of that of a larger one, and a later export with more
finished scenarios moves no group to the other side.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dialoom.graphs import stream
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile

TRAIN, TEST = "train", "test"


@dataclass(frozen=True, slots=True)
class Split:
    """A split of a run's groups.

    Attributes:
        facet: The facet that defines a group.
        test: The groups of the test split.
    """

    facet: str
    test: frozenset[str]

    @classmethod
    def of(cls, run: RunFile, facet: str, share: float) -> Split:
        """Split the groups of a run's whole plan; at least one group is on each side.

        Raises:
            RunError: If there is only one group.
        """
        groups = {key_of(facets, facet) for facets in run.planned_facets()}
        if len(groups) < 2:
            raise RunError(
                f"test_share: all scenarios of {run.path} have the same {facet}, which stays together",
                setting="test_share",
            )
        seed = run.config.seed
        ordered = sorted(groups, key=lambda group: (stream(seed, group, "split").random(), group))
        count = min(max(1, round(share * len(groups))), len(groups) - 1)
        return cls(facet, frozenset(ordered[:count]))

    def is_test(self, facets: Mapping[str, Any]) -> bool:
        """Return whether a scenario belongs to the test split."""
        return key_of(facets, self.facet) in self.test


def key_of(facets: Mapping[str, Any], facet: str) -> str:
    """Return the group of a scenario with these facets.

    Raises:
        RunError: If the facet is missing: the recipe's facet that `splits` is wrong then.
    """
    if facet not in facets:
        raise RunError(f"the recipe splits by {facet!r}, but its scenarios have the facets {', '.join(facets)}")
    return json.dumps(facets[facet], ensure_ascii=False, sort_keys=True)
