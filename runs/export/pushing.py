"""An exported folder, handed to a dataset hub: its card and the files that the card names, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoom.runs.errors import RunError

from .exported import CARD, ExportedFolder

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
            refuses or cannot be reached.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise RunError(f"repository {repository!r} is no name; give OWNER/NAME", setting="repository")
    exported = ExportedFolder.of(folder)
    push = Push(folder, repository, [Path(CARD), *exported.files], exported.licence)
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
    except Exception as error:  # the client's own errors, and those of the library that it calls the hub with
        told = f"the hub took nothing: {_first_line(error)}; {folder} stays as it is, and can be pushed again"
        raise RunError(f"{repository}: {told}") from error
    return Push(folder, repository, push.files, push.licence, str(sent.repo_url.url))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
