"""The reference shows `play = blocking("play", aplay)` as the function that it is.

An extension of griffe, which reads the sources for the reference (mkdocs.yml names it). To griffe, a name that is
assigned is an attribute without a docstring, which the reference would leave out.
"""

from __future__ import annotations

from typing import Any

import griffe


class BlockingForms(griffe.Extension):
    """Gives each blocking form the parameters and the docstring of the operation that it carries out."""

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Look through a module whose names have been read."""
        for name, member in list(mod.members.items()):
            if isinstance(member, griffe.Attribute) and (operation := _operation(member, mod)) is not None:
                mod.set_member(name, _blocking(name, operation))


def _operation(member: griffe.Attribute, module: griffe.Module) -> griffe.Function | None:
    """What a blocking form carries out; `None` if it is no such form."""
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
