"""Flows: recurring tasks, the preferences that decide how they are done, and the right calls."""

from .catalogue import FLOWS, Flow, FlowStep, If, Preference, PreferenceFacet, Provenance
from .checks import FlowError, FlowPair, are_distinct, check_request, draw_slots, find_pairs, find_request, find_sets
from .gold import FlowRequest, Gold, GoldCall, Resident, Slots, follow_flow

__all__ = [
    "FLOWS",
    "Flow",
    "FlowError",
    "FlowPair",
    "FlowRequest",
    "FlowStep",
    "Gold",
    "GoldCall",
    "If",
    "Preference",
    "PreferenceFacet",
    "Provenance",
    "Resident",
    "Slots",
    "are_distinct",
    "check_request",
    "draw_slots",
    "find_pairs",
    "find_request",
    "find_sets",
    "follow_flow",
]
