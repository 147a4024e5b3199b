"""`dialoom agree`: whether people agree with the judge; a sample for them to label, and the kappas of their labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoom.errors import RunError

from .completion import complete_metrics
from .option_flags import JsonFlag, JudgingFlag, RunArgument, TrustFlag, WhereFlag, build_trust
from .terminal import echo_json, echo_lines

if TYPE_CHECKING:
    from dialoom.runs.agreement import Sample

_DEFAULT_ANNOTATORS = ("annotator_1", "annotator_2")


def agree(
    run: RunArgument,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="N",
            min=1,
            help="Draw N judgements and write them, without scores, to a file for people to label.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="The path of a new CSV file for the sample.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="FILE", help="The CSV file with people's labels.")
    ] = None,
    annotators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="The people's columns in a new sample [default: annotator_1,annotator_2] or in --labels [default: "
            "all].",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this metric. Repeatable.", autocompletion=complete_metrics),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            "--scale", metavar="METRIC=LOW-HIGH", help="A metric's scale, if the recipe does not state it. Repeatable."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The seed for drawing the sample. [default: the run's]", show_default=False)
    ] = None,
    judging: JudgingFlag = None,
    where: WhereFlag = None,
    disagreements: Annotated[
        bool, typer.Option("--disagreements", help="Instead of kappas, list judgements with a differing label.")
    ] = False,
    json: JsonFlag = False,
    is_trusted: TrustFlag = False,
) -> None:
    """Compare people's labels with the judge's scores: Cohen's and Fleiss' kappa with 95 % intervals.

    First, --sample N -o FILE writes a CSV file for people to fill in; then --labels FILE reads it.
    """
    _check_options(sample, out, labels, seed, json, disagreements)
    from dialoom.api.run import RunReader

    names = _parse_annotators(annotators)
    reader = RunReader(run, trust=build_trust(is_trusted))
    selection: dict[str, Any] = {"judging": judging, "metrics": metric or [], "scales": scale or [], "where": where}
    if sample is not None and out is not None:
        _print_sample(
            reader.sample_to_label(out, sample, names or _DEFAULT_ANNOTATORS, seed=seed, **selection), run, out, sample
        )
        return
    from dialoom.runs.agreement import as_json, disagreement_table, kappa_table

    result = reader.agreement(path=labels, annotators=names, **selection)
    if json:
        echo_json({"judging": judging or next((each.name for each in reader.judgement_sets), None), **as_json(result)})
        return
    from .reporting import print_tables

    print_tables([disagreement_table(result) if disagreements else kappa_table(result)])


def _check_options(
    sample: int | None, out: Path | None, labels: Path | None, seed: int | None, json: bool, disagreements: bool
) -> None:
    """Check that either sampling or comparing is requested, without options of the other."""
    if (sample is None) == (labels is None):
        raise RunError("give --sample N -o FILE to make a file for people to label, or --labels FILE to read one")
    if sample is not None and out is None:
        raise RunError("-o FILE is missing: give the path for the sample, such as -o labels.csv")
    if sample is not None and (json or disagreements):
        raise RunError(f"{'--json' if json else '--disagreements'} needs --labels; a sample is written as a CSV file")
    if labels is not None and (out is not None or seed is not None):
        raise RunError(f"{'--seed' if out is None else '-o'} needs --sample; the results of --labels FILE are printed")


def _parse_annotators(annotators: str | None) -> tuple[str, ...]:
    if annotators is None:
        return ()
    names = tuple(name.strip() for name in annotators.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise RunError(f"--annotators must be different names, such as anna,ben, got {annotators!r}")
    return names


def _print_sample(sample: Sample, run: Path, out: Path, size: int) -> None:
    shortage = f" (there are no more than {sample.n:,})" if sample.n < size else ""
    lines = [
        f"{sample.n:,} judgements to label written to {out}{shortage}",
        *(f"{count:>7,}  {group}" for group, count in sample.counts.items()),
        f"{sample.conversations:>7,}  conversations to read",
    ]
    if sample.unscored:
        lines.append(f"{sample.unscored:,} judgements have no score and were excluded from the draw")
    if is_file := out.is_file():
        lines.append(f"after filling it in, run: dialoom agree {run} --labels {out}")
    echo_lines(lines, err=not is_file)
