"""The prompts of a run, by id: the shipped ones, those of a recipe, and a user's overrides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dialoom.inputs import read_text

from .errors import PromptError
from .prompt import Prompt

SHIPPED = Path(__file__).parent


class PromptLibrary(Mapping[str, Prompt]):
    """A frozen set of prompts. A run keeps the sources of the ones it uses, so it never reads the files again."""

    def __init__(self, prompts: Iterable[Prompt]) -> None:
        self._prompts = {prompt.id: prompt for prompt in prompts}

    @classmethod
    def load(
        cls, wanted: Iterable[str | Prompt], overrides: Path | None = None, shipped: Path | None = None
    ) -> PromptLibrary:
        """Load prompts.

        Args:
            wanted: Ids such as `personalens/user`, or prompts made in code.
            overrides: A folder of the user's; each `*.md` file in it replaces the prompt whose id it names.
                Files for prompts of other recipes are ignored.
            shipped: The folder that holds the originals as `<id>.md`; dialoom's own by default.

        Raises:
            DataError: If a file cannot be read.
            PromptError: If a file holds no valid prompt, or an override names an unknown id or input.
        """
        folder = shipped or SHIPPED
        read = (_read(folder / f"{each}.md") if isinstance(each, str) else each for each in wanted)
        prompts = {prompt.id: prompt for prompt in read}
        if overrides is not None:
            if not overrides.is_dir():
                raise PromptError(overrides, "no such folder of prompt overrides")
            prompts |= _overrides(overrides, prompts)
        return cls(prompts.values())

    @classmethod
    def from_sources(cls, sources: Mapping[str, str]) -> PromptLibrary:
        """Return the prompts whose sources a run kept, by id."""
        return cls(Prompt.parse(source, id_) for id_, source in sources.items())

    def __getitem__(self, id_: str) -> Prompt:
        return self._prompts[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._prompts)

    def __len__(self) -> int:
        return len(self._prompts)


def _read(path: Path) -> Prompt:
    return Prompt.parse(read_text(path), str(path))


def _overrides(folder: Path, originals: Mapping[str, Prompt]) -> dict[str, Prompt]:
    """Return the usable overrides of a folder, by id."""
    paths = sorted(folder.rglob("*.md"))
    if not paths:
        raise PromptError(folder, "holds no prompt; an override is a .md file with the front matter of its original")
    found: dict[str, Prompt] = {}
    for path in paths:
        prompt = _read(path)
        if prompt.id in found:
            raise PromptError(path, f"overrides {prompt.id!r}, which {found[prompt.id].place} overrides as well")
        if prompt.id in originals:
            _check_override(prompt, originals[prompt.id])
            found[prompt.id] = prompt
        elif not (SHIPPED / f"{prompt.id}.md").is_file():
            known = ", ".join(sorted(originals))
            raise PromptError(path, f"overrides the unknown prompt {prompt.id!r}; there are {known}")
    return found


def _check_override(prompt: Prompt, original: Prompt) -> None:
    if unknown := sorted(set(prompt.front.inputs) - set(original.front.inputs)):
        raise PromptError(
            prompt.place,
            f"prompt {prompt.id!r} asks for the input {unknown[0]!r}, which it does not get; "
            f"it gets {', '.join(original.front.inputs)}",
        )
    for key in ("role", "reply"):
        ours, theirs = getattr(original.front, key), getattr(prompt.front, key)
        if ours != theirs:
            raise PromptError(prompt.place, f"{key} of {prompt.id!r} must stay {ours!r}, not {theirs!r}")
