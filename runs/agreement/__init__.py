"""Agreement between people and judges: a sample for people to label, kappas, and calibrated scores."""

from .calibrated_scores import CalibratedScore, calibrate_scores, calibration_tables
from .items import Sample, Scale, Scales, write_sample
from .labels import LabelFile, LabelProgress, Labels, StoredLabel, count_labels, default_labels_path, read_labels
from .results import (
    Agreement,
    Disagreement,
    ExcludedLabels,
    GroupAgreement,
    as_json,
    compute_agreement,
    disagreement_table,
    kappa_table,
)

__all__ = [
    "Agreement",
    "CalibratedScore",
    "Disagreement",
    "ExcludedLabels",
    "GroupAgreement",
    "LabelFile",
    "LabelProgress",
    "Labels",
    "Sample",
    "Scale",
    "Scales",
    "StoredLabel",
    "as_json",
    "calibrate_scores",
    "calibration_tables",
    "compute_agreement",
    "count_labels",
    "default_labels_path",
    "disagreement_table",
    "kappa_table",
    "read_labels",
    "write_sample",
]
