"""Pages of the site from outside docs/: files at the repository's root, and patterns in the navigation.

A hook of mkdocs, registered in mkdocs.yml. The root's files become pages with adjusted links. A pattern in the
navigation stands for all pages that it matches, so that a new design note need not be listed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "CHANGELOG.md": "changelog.md",
}
"""The files and the names of their pages."""

FOLDERS = {"docs/design/": "design/packages-and-names.md"}
"""Links to a folder, which is not a page, and the pages that they lead to."""

_LINK = re.compile(r"(?<=\]\()([\w./-]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the patterns in the navigation by pages."""
    for part in config.nav or ():
        for title, pages in part.items():
            if isinstance(pages, list):
                part[title] = [found for page in pages for found in _expanded(page, Path(config.docs_dir))]
    return config


def _expanded(page: Any, folder: Path) -> list[Any]:
    if not isinstance(page, str) or "*" not in page:
        return [page]
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob(page))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the root's pages to those of docs/."""
    root = Path(config.config_file_path).parent
    for name, page in PAGES.items():
        text = _LINK.sub(lambda link: _target(link[1]), (root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "LICENSE.txt", content=(root / "LICENSE").read_text(encoding="utf-8")))
    return files


def _target(link: str) -> str:
    """Return the target in the site of a link to a file of the repository."""
    if link == "LICENSE":
        return "LICENSE.txt"
    return PAGES.get(link) or FOLDERS.get(link) or link.removeprefix("docs/")
