"""Whether people agree with the judge: a sample for them to label, and the kappas of what they filled in."""

from .items import Group, Item
from .labels import Labels, read_labels
from .rendering import as_json, table_of
from .results import Agreement, GroupAgreement, agreement
from .sample import Sample, write_sample
from .scales import Scale, Scales

__all__ = [
    "Agreement",
    "Group",
    "GroupAgreement",
    "Item",
    "Labels",
    "Sample",
    "Scale",
    "Scales",
    "agreement",
    "as_json",
    "read_labels",
    "table_of",
    "write_sample",
]
