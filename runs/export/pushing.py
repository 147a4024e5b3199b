"""An exported folder, handed to a dataset hub: its card and the files that the card names, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dialoom.runs.errors import RunError

CARD = "README.md"

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Push:
    """What is handed over, or would be.

    Attributes:
        folder: Where the files lie.
        repository: `OWNER/NAME`.
        files: The card first, then what it names, relative to the folder.
        licence: As the card states it.
        url: Where it is now; `None` if nothing was sent.
    """

    folder: Path
    repository: str
    files: Sequence[Path]
    licence: str
    url: str | None = None

    @property
    def bytes(self) -> int:
        """How large the files are together."""
        return sum((self.folder / file).stat().st_size for file in self.files)


def pushed(
    folder: Path, repository: str, *, is_sent: bool = False, is_public: bool = False, endpoint: str | None = None
) -> Push:
    """Hand an exported folder to a dataset hub (Hugging Face's, or one that speaks the same).

    The token is huggingface_hub's own matter (`HF_TOKEN`, or `hf auth login`).

    Args:
        folder: With a card, as an export with a test share writes one.
        repository: `OWNER/NAME`; made if it is not there.
        is_sent: Whether to send it; otherwise it is only said what would be sent.
        is_public: Whether a repository that is made may be seen by all.
        endpoint: The hub's address; by default Hugging Face's.

    Raises:
        RunError: If there is no card, it names a file that is not there or lies elsewhere, the name is none, or the hub
            refuses.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise RunError(f"repository {repository!r} is no name; give OWNER/NAME", setting="repository")
    front = _front_matter(folder)
    push = Push(folder, repository, [Path(CARD), *_named(folder, front)], str(front.get("license", "unknown")))
    if not is_sent:
        return push
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(endpoint=endpoint)
    try:
        api.create_repo(repository, repo_type="dataset", private=not is_public, exist_ok=True)
        sent = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=[file.as_posix() for file in push.files],
            commit_message="Exported by dialoom",
        )
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise RunError(f"{repository}: the hub took nothing: {_first_line(error)}") from error
    return Push(folder, repository, push.files, push.licence, str(sent.repo_url.url))


def _front_matter(folder: Path) -> dict[str, Any]:
    card = folder / CARD
    if not card.is_file():
        raise RunError(f"{folder} has no {CARD} that says what it holds; give a folder that an export has written")
    found = _FRONT.match(card.read_text(encoding="utf-8"))
    try:
        front = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError as error:
        raise RunError(f"{card}: its front matter is no YAML: {_first_line(error)}") from error
    if not isinstance(front, dict):
        raise RunError(f"{card} has no front matter of a dataset card")
    return front


def _named(folder: Path, front: dict[str, Any]) -> list[Path]:
    """The data files of a card's configurations."""
    paths = []
    for config in front.get("configs") or []:
        for split in config.get("data_files") or []:
            given = split.get("path", []) if isinstance(split, dict) else split
            paths += [Path(path) for path in ([given] if isinstance(given, str) else given)]
    if not paths:
        raise RunError(f"{folder / CARD} names no data files")
    for path in paths:
        whole = folder / path
        if not whole.is_file() or whole.is_symlink() or not whole.resolve().is_relative_to(folder.resolve()):
            raise RunError(f"{folder / CARD} names {str(path)!r}, which is no file in that folder")
    return paths


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
