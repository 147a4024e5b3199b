"""Flows: recurring tasks, the preferences that decide them, and the right calls."""

from .catalogue import FLOWS
from .checks import FlowError, FlowPair, apart, drawn_slots, find_pairs, find_request, find_sets, refusal
from .expressions import Flow, Preference, PreferenceFacet, Provenance
from .gold import FlowRequest, Gold, GoldCall, Resident, Slots, follow

__all__ = [
    "FLOWS",
    "Flow",
    "FlowError",
    "FlowPair",
    "FlowRequest",
    "Gold",
    "GoldCall",
    "Preference",
    "PreferenceFacet",
    "Provenance",
    "Resident",
    "Slots",
    "apart",
    "drawn_slots",
    "find_pairs",
    "find_request",
    "find_sets",
    "follow",
    "refusal",
]
