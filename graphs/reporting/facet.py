"""Facets of scenarios: the groups of reports, and those by which exports are split or intervals computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dialoom.graphs.outcome import Episode


@dataclass(frozen=True, slots=True)
class Facet:
    """A facet of scenarios whose values become rows; if its value is a list, each item becomes a row.

    Attributes:
        name: The facet.
        title: The column's name; by default the facet's.
        order: Its values in the order of the rows; others come last, sorted.
        labels: The texts shown for its values.
        splits: Whether exports may be split into train and test by it: all scenarios of a value are on one side.
        unit: The plural name of its values, if intervals are computed over them, e.g. `people`.
        tells_length: Whether it is a number that grows with the length of the conversation: workers then start with the
            longest ones.
    """

    name: str
    title: str = ""
    order: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    splits: bool = False
    unit: str = ""
    tells_length: bool = False

    @property
    def column(self) -> str:
        """The column's name."""
        return self.title or self.name

    def values(self, episode: Episode) -> list[str]:
        """Return a scenario's values of the facet, as text."""
        value = episode.facets.get(self.name)
        return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]

    def rank(self, value: str) -> tuple[int, str]:
        """Return the sort key of a value."""
        return (self.order.index(value) if value in self.order else len(self.order), value)


def split_facet(facets: Iterable[Facet]) -> str | None:
    """Return the facet by which an export may be split into train and test; `None` if there is none."""
    return next((facet.name for facet in facets if facet.splits), None)


def unit_facet(facets: Iterable[Facet]) -> str | None:
    """Return the facet over whose values intervals are computed: the one with a `unit`, else the one that `splits`.

    Return `None` if intervals are computed over scenarios.
    """
    known = tuple(facets)
    return next((facet.name for facet in known if facet.unit), split_facet(known))


def units_of(facets: Iterable[Facet]) -> str:
    """Return the plural name of the units over which intervals are computed, e.g. `people`."""
    known = tuple(facets)
    if unit_facet(known) is None:
        return "scenarios"
    return next((facet.unit for facet in known if facet.unit), "people")


def length_facet(facets: Iterable[Facet]) -> str | None:
    """Return the facet that grows with the length of a conversation; `None` if there is none."""
    return next((facet.name for facet in facets if facet.tells_length), None)
