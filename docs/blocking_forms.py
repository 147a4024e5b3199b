"""Show `play = blocking("play", aplay)` in the reference as the function that it is.

An extension of griffe, which reads the sources for the reference; it is registered in mkdocs.yml. For griffe, an
assigned name is an attribute without a docstring, which the reference would leave out.
"""

from __future__ import annotations

from typing import Any

import griffe


class BlockingForms(griffe.Extension):
    """An extension that gives each blocking form the parameters and the docstring of its operation."""

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Replace the blocking forms of a module that has been read."""
        for name, member in list(mod.members.items()):
            if isinstance(member, griffe.Attribute) and (operation := _operation(member, mod)) is not None:
                mod.set_member(name, _blocking(name, operation))


def _operation(member: griffe.Attribute, module: griffe.Module) -> griffe.Function | None:
    """Return the operation of a blocking form; `None` if it is not one."""
    call = member.value
    if not isinstance(call, griffe.ExprCall) or str(call.function) != "blocking":
        return None
    operation = module.members.get(str(call.arguments[-1]))
    return operation if isinstance(operation, griffe.Function) else None


def _blocking(name: str, operation: griffe.Function) -> griffe.Function:
    form = griffe.Function(
        name,
        parameters=operation.parameters,
        returns=operation.returns,
        lineno=operation.lineno,
        endlineno=operation.endlineno,
    )
    if operation.docstring is not None:
        form.docstring = griffe.Docstring(operation.docstring.value, parent=form)
    return form
