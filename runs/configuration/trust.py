"""Trust: the code and addresses that a run file refers to, and whether this user has allowed their use."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from dialoom.errors import Advice
from dialoom.graphs import Recipe, RecipeOptions
from dialoom.graphs.built_in_environments import is_url
from dialoom.graphs.simulation import Simulation
from dialoom.inputs import DataError, read_bytes
from dialoom.outputs import OutputError, append_private
from dialoom.roles import ModelBinding
from dialoom.runs.errors import RunError, TrustError

from .recipes import is_file_spec


@dataclass(frozen=True, slots=True)
class Reference:
    """Code, an address or a file that a run file or a case refers to.

    Attributes:
        text: A description that includes the effect of its use; in a message, it follows the word "names".
        mark: The key under which this machine remembers that the user has specified it.
        spec: Its name in the run file or case.
        code: The file whose code would run, if known.
    """

    text: str
    mark: str
    spec: str
    code: Path | None = None

    def hash(self) -> str | None:
        """Return the SHA-256 of the code as it is now; `None` if there is no code or it cannot be read."""
        try:
            return None if self.code is None else hashlib.sha256(read_bytes(self.code)).hexdigest()
        except DataError:
            return None


def compute_code_hashes(references: Iterable[Reference]) -> dict[str, str]:
    """Return the SHA-256 of each code file by its name. Files that these files import are not included."""
    return {each.spec: found for each in references if (found := each.hash()) is not None}


def find_changed_files(references: Iterable[Reference], code: Mapping[str, str]) -> list[Path]:
    """Return the files of code whose SHA-256 differs from the given one; missing files are not included."""
    return list(
        dict.fromkeys(
            each.code
            for each in references
            if each.code and each.spec in code and each.hash() not in (None, code[each.spec])
        )
    )


def find_study_problem(path: Path, recipe: Recipe, spec: str, code: Mapping[str, str]) -> RunError | None:
    """Return the reason why the functions of a run's study cannot be called; `None` if they are as when it was made.

    Args:
        path: The run's file.
        recipe: The run's recipe; recipes other than studies have no such reason.
        spec: The recipe's name in the run.
        code: The hashes of the code when the run was made, by its name in the run.
    """
    if not isinstance(recipe, Simulation):
        return None
    if recipe.missing_functions:
        return RunError(
            f"{path} was created with functions that were passed as Python objects: "
            f"{', '.join(recipe.missing_functions)}; "
            "call dialoom.simulate again with the same arguments",
            setting="path",
        )
    for named in recipe_references(spec, recipe=recipe):
        if named.hash() != code.get(named.spec):
            return RunError(
                f"{named.code} is missing or has changed since {path} was created; restore it",
                setting="path",
                advice=Advice(
                    "score_anew",
                    "or score the recorded conversations with the new code: export them as dialogues, and import them "
                    "with the study",
                    {"path": path},
                ),
            )
    return None


def recipe_references(spec: str, located_spec: str | None = None, recipe: Recipe | None = None) -> list[Reference]:
    """Return the file of a recipe that is named by a path, or the functions and files of a study; otherwise nothing.

    Args:
        spec: The recipe's name.
        located_spec: The recipe's name with the path at which its file was found; by default, the path is that in
            `spec`, relative to the working folder.
        recipe: The recipe, if it is a study.
    """
    if isinstance(recipe, Simulation):
        found_functions = [
            _file_reference("function", f"{each.path}:{each.spec.rpartition(':')[2]}", each.spec)
            for each in recipe.file_functions
        ]
        if (data := recipe.environment_file) is None:
            return found_functions
        text = f"{data}, which conversations would begin with"
        return [*found_functions, Reference(text, f"read {data}", recipe.study.assistant.environment, data)]
    return [_file_reference("recipe", located_spec or spec, spec)] if is_file_spec(spec) else []


def cast_references(models: Mapping[str, ModelBinding]) -> list[Reference]:
    """Return the code that players run, and the addresses at which they are called."""
    return [named for binding in models.values() for named in player_references(binding.model, binding.api_base)]


def player_references(model: str, api_base: str | None = None) -> list[Reference]:
    """Return the code of a player, or the address at which it is called, to which its provider's key would be sent.

    Addresses on this machine are included, as another user may listen there. Some model names are addresses.
    """
    kind, _, spec = model.partition(":")
    if kind == "graph":
        return [_file_reference("player", spec, model)]
    if kind == "python":
        module = spec.rpartition(":")[0]
        code = _find_module_file(module)
        text = f"the player {model}, which would run {code or module}"
        return [Reference(text, f"player {model} {code or ''}", model, code)]
    if (address := api_base or (model if "://" in model else None)) is None:
        return []
    text = f"the model {model} at {address}, to which your key for it would be sent"
    return [Reference(text, f"model {model} {address}", model)]


def server_references(servers: Iterable[str]) -> list[Reference]:
    """Return MCP servers that would be started here, or whose tools would be called at an address."""
    return [
        Reference(
            f"the MCP server at {each}" if is_url(each) else f"the MCP server {each!r}, which would be started here",
            f"mcp {each}",
            each,
        )
        for each in servers
    ]


def load_references(loads: Iterable[str]) -> list[Reference]:
    """Return models that would be loaded into this process, and may contain code."""
    return [Reference(f"the model {each}, which would be loaded here", f"load {each}", each) for each in loads]


def file_references(options: RecipeOptions) -> list[Reference]:
    """Return the files that a recipe's options refer to, which planning reads and puts into requests."""
    paths = [path for _, value in options for path in _collect_paths(value)]
    return [Reference(f"{path}, which planning would read", f"read {path}", str(path)) for path in paths]


def _collect_paths(value: Any) -> list[Path]:
    if isinstance(value, tuple | list):
        return [path for each in value for path in _collect_paths(each)]
    return [value] if isinstance(value, Path) else []


def _file_reference(what: str, spec: str, full_spec: str) -> Reference:
    path, _, name = spec.rpartition(":")
    code = Path(path).expanduser().resolve()
    return Reference(f"the {what} {full_spec}, which would run {code}", f"{what} {code}:{name}", full_spec, code)


def _find_module_file(module: str) -> Path | None:
    """Return the file that a module would be imported from, without importing its packages."""
    if (known := getattr(sys.modules.get(module), "__file__", None)) is not None:
        return Path(known).resolve()
    search_paths: list[str] | None = [*sys.path, str(Path.cwd())]
    origin = None
    for part in module.split("."):
        try:
            spec = PathFinder.find_spec(part, search_paths)
        except (ImportError, ValueError, OSError):
            return None
        if spec is None:
            return None
        search_paths = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
        origin = spec.origin
    return Path(origin).resolve() if origin is not None and Path(origin).is_file() else None


_UNKNOWN_ORIGIN = "This run file or case comes from elsewhere"
_CODE_MOVED = "This run file or case was made here, but with code in another place (moved, or another working folder)"

_MAX_LIST_BYTES = 16 * 2**20
"""Maximum size in bytes of the file that lists marks.

It suffices for some hundred thousand runs; a larger file is not read.
"""


def remember(id_: str | None, marks: Iterable[str]) -> None:
    """Record the marks of references that the user has specified for a run or a case. A failure to write is ignored."""
    if id_ is None:
        return
    known = load_remembered(id_)
    lines = [json.dumps([id_, mark]) + "\n" for mark in dict.fromkeys(marks) if mark not in known]
    if lines and (path := _list_path()) is not None:
        with suppress(OutputError):
            append_private(path, "".join(lines))


def load_remembered(id_: str | None) -> frozenset[str]:
    """Return the marks that `remember` has recorded for a run or a case."""
    found: set[str] = set()
    for line in [] if id_ is None else _read_remembered_lines():
        with suppress(ValueError):  # truncated, or written by another program
            whose, mark = json.loads(line)
            if whose == id_ and isinstance(mark, str):
                found.add(mark)
    return frozenset(found)


def _read_remembered_lines() -> list[str]:
    if (path := _list_path()) is None:
        return []
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
                return []
            return file.read(_MAX_LIST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


def _list_path() -> Path | None:
    """Return the path of the file that lists marks. The XDG base directory specification ignores relative folders."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    try:
        state = Path(folder) if os.path.isabs(folder) else Path.home() / ".local" / "state"  # noqa: PTH117
    except RuntimeError:  # there is no home directory
        return None
    return state / "dialoom" / "given.jsonl"


class Trust:
    """The user's trust in the references of one opened file.

    Args:
        trusts_all: Whether everything is trusted, whoever made the file.
        tell: Receives a line for each reference that is trusted only because of `trusts_all`, and for changed code.

    Attributes:
        used: The marks of all references whose use was allowed so far.
        changed: The names of the files of code, and of functions, that have changed since the file was made.
    """

    def __init__(self, everything: bool = False, tell: Callable[[str], None] = lambda _line: None) -> None:
        self.trusts_all = everything
        self._tell = tell
        self.used: dict[str, None] = {}
        self.changed: list[str] = []

    def trust_specified(self, references: Iterable[Reference]) -> None:
        """Trust the references that the user has specified in this process."""
        self.used.update(dict.fromkeys(each.mark for each in references))

    def check(
        self, holder: Path | str, id_: str | None, references: Iterable[Reference], code: Mapping[str, str]
    ) -> None:
        """Check that the user has allowed the use of these references.

        Args:
            holder: The file with the references, for messages.
            id_: The id of the run or case, under which the user's own marks are stored.
            references: The references.
            code: The hashes of the code when the file was made, by its name in the file.

        Raises:
            TrustError: If a reference may not be used.
        """
        references = list(dict.fromkeys(references))
        new = [each for each in references if each.mark not in self.used]
        known = load_remembered(id_) if new else frozenset()
        unknown = [each for each in new if each.mark not in known]
        if unknown and not self.trusts_all:
            raise TrustError(
                f"{holder} names {'; '.join(each.text for each in unknown)}. "
                f"{_CODE_MOVED if known else _UNKNOWN_ORIGIN}, so they are not used",
                advice=Advice("trust", "if you trust it, give trust=True", {"path": holder}),
            )
        for each in unknown:
            self._tell(f"{holder}: allowed to use {each.text}")
        for path in find_changed_files(references, code):
            self.report_changed(holder, path.name, str(path))
        self.trust_specified(new)

    def report_changed(self, holder: Path | str, name: str, where: str) -> None:
        """Report, once, that a file of code or a function has changed since a run was made."""
        if name not in self.changed:
            self._tell(f"{holder}: {where} has changed since the run was created")
            self.changed.append(name)
