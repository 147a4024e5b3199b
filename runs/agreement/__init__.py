"""Agreement between people and judges: a sample for people to label, and the kappas of their labels."""

from .items import Group, Item, Sample, Scale, Scales, items_of, write_sample
from .labelling import GivenLabel, LabelFile, Labelled, labelled, labels_beside
from .labels import Labels, read_labels
from .results import Agreement, EarlierLabels, GroupAgreement, agreement, as_json, table_of

__all__ = [
    "Agreement",
    "EarlierLabels",
    "GivenLabel",
    "Group",
    "GroupAgreement",
    "Item",
    "LabelFile",
    "Labelled",
    "Labels",
    "Sample",
    "Scale",
    "Scales",
    "agreement",
    "as_json",
    "items_of",
    "labelled",
    "labels_beside",
    "read_labels",
    "table_of",
    "write_sample",
]
