"""Where an exception of a user's player was raised: the last lines of its traceback that are the user's."""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from pathlib import Path
from types import CodeType

_MOST_FRAMES = 3
_MOST_LETTERS = 120
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def users_frames(error: BaseException) -> str:
    """The user's frames, the innermost last, such as `moody.py:4 in reply: raise RuntimeError("no")`; may be empty.

    Args:
        error: What was raised. Frames of dialoom are left out, and those of libraries where the user has some.
    """
    frames = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("dialoom.")
    ]
    own = [each for each in frames if not each[0].co_filename.startswith((*_LIBRARIES, "<"))]
    return "; ".join(_shown(*each) for each in (own or frames)[-_MOST_FRAMES:])


def _shown(code: CodeType, line: int) -> str:
    path, here = Path(code.co_filename), Path.cwd()
    place = path.relative_to(here) if path.is_relative_to(here) else path
    text = linecache.getline(code.co_filename, line).strip()
    return f"{place}:{line} in {code.co_name}" + (f": {text:.{_MOST_LETTERS}}" if text else "")
