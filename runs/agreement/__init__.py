"""Agreement between people and judges: a sample for people to label, kappas, and calibrated scores."""

from .calibrated import CalibratedScore, calibrated_scores, calibrated_tables
from .items import Sample, Scale, Scales, write_sample
from .labels import GivenLabel, LabelFile, Labelled, Labels, labelled, labels_beside, read_labels
from .results import (
    Agreement,
    Disagreement,
    GroupAgreement,
    LabelsLeftOut,
    agreement,
    as_json,
    disagreement_table,
    table_of,
)

__all__ = [
    "Agreement",
    "CalibratedScore",
    "Disagreement",
    "GivenLabel",
    "GroupAgreement",
    "LabelFile",
    "Labelled",
    "Labels",
    "LabelsLeftOut",
    "Sample",
    "Scale",
    "Scales",
    "agreement",
    "as_json",
    "calibrated_scores",
    "calibrated_tables",
    "disagreement_table",
    "labelled",
    "labels_beside",
    "read_labels",
    "table_of",
    "write_sample",
]
