"""Fingerprints of the code of a user's own functions and classes, to notice that a run continues with other code."""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, MethodType
from typing import Any

from dialoom.settings import CompiledGraph, LangChainModel

_LIBRARY_PACKAGES = frozenset({"builtins", "functools", "langchain_core"})
"""The packages whose objects have no code of the user's own except for the functions that they hold."""

_GLOBAL_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
"""The instructions that read a global variable. Other names in code are mostly attributes."""


def fingerprint(value: object) -> str | None:
    """Return a hash of the code of a function or class, or of an object's class; `None` if there is no code to hash.

    The hash covers bytecode, constants, annotations, and constant defaults and arguments of a `functools.partial`, also
    those of the functions and classes of the same module that the code names, and of functions in closures. It does not
    cover line numbers, other modules, and values that the code reads elsewhere. It is the same in every process with
    the same version of Python.

    Args:
        value: A function, class or object. Graphs and LangChain models have no code of their own.
    """
    has_code = inspect.isclass(value) or inspect.isroutine(value) or _find_callees(value)
    if not has_code and isinstance(value, CompiledGraph | LangChainModel):
        return None
    text = "\n".join(_describe(value, None, set()))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16] if text else None


def _find_callees(value: object) -> list[Any]:
    """Return what an object calls: as a decorated function, a method, a partial, a property or a LangChain tool."""
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, functools.partial | functools.partialmethod):
        return [value.func, *filter(inspect.isroutine, (*value.args, *value.keywords.values()))]
    if isinstance(value, property):
        return [each for each in (value.fget, value.fset, value.fdel) if each is not None]
    names = ("__wrapped__", "func", "coroutine")
    return [found for name in names if inspect.isroutine(found := inspect.getattr_static(value, name, None))]


def _describe(target: Any, module: str | None, seen: set[int]) -> Iterator[str]:
    """Yield texts that describe the code of a function, class or object, and of functions and classes that it names.

    Args:
        target: The function, class or object.
        module: The module whose functions and classes are described; by default that of each inner function or class.
        seen: The ids of what is described already.
    """
    if id(target) in seen:
        return
    seen.add(id(target))
    if inspect.isclass(target):
        module = module or target.__module__
        for base in target.__mro__:
            for name, value in vars(base).items() if base.__module__ == module else ():
                if inspect.isroutine(value) or inspect.isclass(value) or _find_callees(value):
                    yield f"{name} {getattr(value, '__name__', '')}"
                yield from _describe(value, module, seen)
        return
    for callee in _find_callees(target):
        yield from _describe(callee, module, seen)
    if isinstance(target, functools.partial | functools.partialmethod):
        yield _format_constant([*target.args, *target.keywords.items()])
    if not inspect.isroutine(target) and type(target).__module__.partition(".")[0] not in _LIBRARY_PACKAGES:
        yield from _describe(type(target), module, seen)
    if not inspect.isfunction(target):
        return
    module = module or target.__module__
    yield re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(inspect.get_annotations(target)))
    yield _format_constant([target.__defaults__, *(target.__kwdefaults__ or {}).items()])
    names: list[str] = []
    yield from _describe_code(target.__code__, names)
    global_values = [target.__globals__.get(name) for name in names]
    for each in global_values:
        if (inspect.isclass(each) or inspect.isroutine(each)) and getattr(each, "__module__", None) == module:
            yield from _describe(each, module, seen)
    for cell in target.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            yield from _describe(cell.cell_contents, module, seen)


def _describe_code(code: CodeType, names: list[str]) -> Iterator[str]:
    """Yield texts that describe a code object and those nested in it; add the global variables read to `names`."""
    names += [each.argval for each in dis.get_instructions(code) if each.opname in _GLOBAL_LOADS]
    yield f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {code.co_flags} {code.co_names} {code.co_varnames}"
    yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_freevars} {code.co_cellvars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _describe_code(constant, names)
        else:
            yield _format_constant(constant)


def _format_constant(value: Any) -> str:
    """Return the text of a constant, the same in every process; of any other value, the name of its type."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_format_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_format_constant, value)))}}}"
    is_plain = value is None or isinstance(value, bool | int | float | complex | str | bytes)
    return repr(value) if is_plain else type(value).__name__
