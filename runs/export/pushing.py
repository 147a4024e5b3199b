"""Exported folders, and their upload to a dataset hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dialoom.inputs import parse_yaml, read_text
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError

CARD = "README.md"

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_BEGIN, _END = "<!-- what is in it: written by dialoom describe -->", "<!-- until here -->"
_SECTION = re.compile(rf"\n*{re.escape(_BEGIN)}.*?{re.escape(_END)}\n*", re.DOTALL)


def card_path(target: Path) -> Path:
    """Return the path of the card of a single-file export."""
    return target.with_name(f"{target.name}.card.md")


def add_section(card: Path, text: str) -> None:
    """Add a description to an export's card, replacing an earlier one.

    Raises:
        OutputError: If the card cannot be written.
    """
    before = _SECTION.sub("\n", read_text(card)).rstrip("\n")
    with text_output(card) as file:
        file.write(f"{before}\n\n{_BEGIN}\n{text.strip()}\n{_END}\n")


def read_card_files(folder: Path) -> tuple[list[Path], str]:
    """Return the data files that the card of an exported folder lists, relative to the folder, and the licence.

    Raises:
        RunError: If it has no card, or the card names a file that does not exist or lies outside the folder.
    """
    card = folder / CARD
    if not card.is_file():
        raise RunError(f"{folder} has no {CARD}; give a folder that an export has written")
    found = _FRONT_MATTER.match(read_text(card))
    front = parse_yaml(found[1], card, first_line=2) if found else None
    if not isinstance(front, dict):
        raise RunError(f"{card} has no front matter of a dataset card")
    paths: list[Path] = []
    for place, config in _as_numbered_list(front.get("configs"), "configs"):
        if not isinstance(config, dict):
            raise RunError(f"{card}: {place} is {config!r:.40}; it must have a name (config_name) and data_files")
        for at, split in _as_numbered_list(config.get("data_files"), f"{place}.data_files"):
            given = split.get("path") if isinstance(split, dict) else split
            for each in given if isinstance(given, list) else [given]:
                if not isinstance(each, str):
                    raise RunError(f"{card}: {at} contains {each!r:.40}, which must be the path of a file")
                paths.append(Path(each))
    if not paths:
        raise RunError(f"{card} names no data files")
    for path in paths:
        whole = folder / path
        if not whole.is_file() or whole.is_symlink() or not whole.resolve().is_relative_to(folder.resolve()):
            raise RunError(f"{card} names {str(path)!r}, which is not a file in that folder")
    return paths, str(front.get("license", "unknown"))


def _as_numbered_list(value: Any, place: str) -> list[tuple[str, Any]]:
    """Return the values under a key of a card, each with its place for messages."""
    several = value if isinstance(value, list) else [] if value is None else [value]
    return [(f"{place}.{number}", each) for number, each in enumerate(several)]


_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of an upload, or a preview of it.

    Attributes:
        folder: The folder of the files.
        files: The card, followed by the files that it lists, relative to the folder.
        licence: The licence stated in the card.
        url: The address of the uploaded dataset; `None` if nothing was sent.
    """

    folder: Path
    files: Sequence[Path]
    licence: str
    url: str | None = None

    @property
    def bytes(self) -> int:
        """The total size of the files, in bytes."""
        return sum((self.folder / file).stat().st_size for file in self.files)


def push_dataset(
    folder: Path, repository: str, *, is_sent: bool = False, is_public: bool = False, endpoint: str | None = None
) -> PushResult:
    """Upload an exported folder to a dataset hub (Hugging Face's, or a compatible one).

    huggingface_hub handles the token (`HF_TOKEN`, or `hf auth login`).

    Args:
        folder: A folder with a card, such as an export with a test share.
        repository: `OWNER/NAME`; created if it does not exist.
        is_sent: Whether to upload; otherwise the upload is only previewed.
        is_public: Whether a newly created repository is public.
        endpoint: The hub's address; by default Hugging Face's.

    Raises:
        RunError: If there is no card, it names a file that does not exist or lies outside the folder, the repository's
            name is invalid, or the hub refuses or cannot be reached.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise RunError(f"repository {repository!r} is not a valid name; give OWNER/NAME", setting="repository")
    files, licence = read_card_files(folder)
    push = PushResult(folder, [Path(CARD), *files], licence)
    if not is_sent:
        return push
    from huggingface_hub import HfApi

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
    except Exception as error:  # errors of the client and of its HTTP library
        first = next(iter(str(error).strip().splitlines()), type(error).__name__).strip()
        raise RunError(
            f"{repository}: the upload failed: {first}; {folder} is unchanged, and can be pushed again"
        ) from error
    return replace(push, url=str(sent.repo_url.url))
