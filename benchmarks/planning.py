"""Planning of the full PersonaLens size and reading of the plan: time, peak memory, bytes.

    python benchmarks/planning.py [--scenarios 122133] [--small 2000]

A synthetic release (invented people, 20 domains with summaries of a kilobyte each, 81 tasks) is written to a temporary
folder, planned, and read as the engine does. The small plan is measured first, in its own process: if memory depended
on the size of the plan, the peak of the large one would be higher.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dialoom.graphs.personalens import RECIPE
from dialoom.personas import DOMAINS
from dialoom.roles import ModelBinding
from dialoom.runs.configuration.config import RunConfig
from dialoom.runs.store import OWN_JUDGEMENTS, JudgementSet, RunStore

SINGLE_PER_DOMAIN, MULTI = 3, 21
WORDS = (
    "she asked once for a table near the window and later for a quiet seat with an early train to the coast"
).split()


DEMOGRAPHICS = [
    "age",
    "gender",
    "employment_status",
    "education",
    "marital_status",
    "english_proficiency",
    "ethnicity",
    "religion",
    "birth_country",
    "reside_country",
]


def write_people(root: Path, people: int) -> None:
    """Write invented people in the release's layout; all their tasks qualify."""
    situation = {"Location": "Here", "Device": "Laptop", "Environment": "Quiet"}
    for number in range(people):
        draw = random.Random(number)
        prose = {name: " ".join(draw.choices(WORDS, k=200)) for name in DOMAINS}
        profile = {
            "affinities": {name: _make_affinities(draw) for name in DOMAINS},
            "demographics": {
                "user_id": f"user{number}",
                **dict.fromkeys(DEMOGRAPHICS, "told"),
            },
            "interests": dict.fromkeys(DOMAINS, 1),
            "interactions": prose,
        }
        tasks, together = {}, {}
        for index, name in enumerate(DOMAINS):
            for k in range(SINGLE_PER_DOMAIN):
                tasks[f"Task {index * SINGLE_PER_DOMAIN + k}"] = _make_task(
                    f"SD-{name}-task-{k}", [name], situation, draw
                )
        for k in range(MULTI):
            together[f"Task {k}"] = _make_task(f"MD-task-{k}", draw.sample(DOMAINS, 4), situation, draw)
        folder = root / "data" / "profile" / f"user{number}"
        folder.mkdir(parents=True)
        for file, content in (("profile", profile), ("tasks", tasks), ("tasks_md", together)):
            (folder / f"{file}.json").write_text(json.dumps(content))


def _make_affinities(draw: random.Random) -> dict[str, list[str]]:
    return {f"Liking {k}": [draw.choice(WORDS) for _ in range(3)] for k in range(4)}


def _make_task(id_: str, domains: list[str], situation: dict[str, str], draw: random.Random) -> dict[str, object]:
    text = " ".join(draw.choices(WORDS, k=30))
    return {
        "Task Description": text,
        "User Intent": text,
        "Task Goal": text,
        "Relevant Affinity Types": ["Liking 1"],
        "task_id": id_,
        "situations": {**situation, "Time of Day": draw.choice(WORDS), "Day of the Week": "Monday"},
        "Relevant Domains": domains,
    }


def measure(root: Path, scenarios: int) -> dict[str, float]:
    """Plan and read the plan in this process; return the measurements."""
    options = RECIPE.options_type.model_validate({"profiles": str(root), "limit": scenarios})
    models = {role: ModelBinding(model="offline/attentive", temperature=0.0) for role in RECIPE.roles}
    config = RunConfig(recipe="personalens", options=options.model_dump(mode="json"), models=models, seed=0)
    path = root / f"{scenarios}.db"
    store = RunStore.create(path, config, RECIPE.library())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter()
    own = JudgementSet(OWN_JUDGEMENTS, {}, {})
    planned = store.plan(RECIPE.scenarios(options, random.Random(0), lambda _note: None), [], own)
    planning = time.perf_counter() - started
    started = time.perf_counter()
    read = sum(1 for _ in store.queue.pending(RECIPE))
    reading = time.perf_counter() - started
    store.close()
    assert planned == read == scenarios, (planned, read)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "scenarios": planned,
        "planning_s": round(planning, 1),
        "reading_s": round(reading, 1),
        "imported_mib": round(before, 1),
        "peak_mib": round(peak, 1),
        "file_mib": round(path.stat().st_size / 2**20, 1),
    }


def main() -> None:
    """Measure both sizes, each in its own process, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenarios", type=int, default=122_133)
    parser.add_argument("--small", type=int, default=2_000)
    parser.add_argument("--measure", nargs=2, metavar=("ROOT", "N"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(Path(arguments.measure[0]), int(arguments.measure[1]))))
        return
    per_person = SINGLE_PER_DOMAIN * len(DOMAINS) + MULTI
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_people(root, -(-arguments.scenarios // per_person))
        results = []
        for size in (arguments.small, arguments.scenarios):
            command = [sys.executable, __file__, "--measure", str(root), str(size)]
            results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    for result in results:
        print(
            f"{result['scenarios']:>9,} scenarios: planned in {result['planning_s']} s, read back in "
            f"{result['reading_s']} s, peak {result['peak_mib']} MiB ({result['imported_mib']} MiB after imports), "
            f"file {result['file_mib']} MiB"
        )
    small, large = results
    print(f"peak of the large plan / peak of the small one: {large['peak_mib'] / small['peak_mib']:.2f}")


if __name__ == "__main__":
    main()
