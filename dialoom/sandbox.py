"""The Jinja2 sandbox for expressions and prompts from users and strangers. This module is below all layers.

Jinja2's own sandbox prevents access to Python's internals, but not a result such as `"a" * 10**9`. Here time and memory
are bounded by the length of the template and its values: operators work on numbers of limited size, no filter
or method repeats or pads a string, and assignments, macros and ranges, which could multiply the output, are not
available. Constants are computed while the template is rendered, where these limits apply, and never while it is
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jinja2 import TemplateSyntaxError, Undefined, filters, meta, nodes, pass_eval_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import htmlsafe_json_dumps

_MAX_INTEGER_BITS = 4096
"""Maximum number of bits of an integer, about 1,200 digits."""
_MAX_CHARACTERS = 1_000_000
"""Maximum length of the result of `+`, `join` or `replace`."""
_MAX_DECIMALS = 30
_MAX_LOOP_DEPTH = 3
"""Maximum depth of nested loops."""

_FILTERS = frozenset(
    "abs capitalize count d default dictsort first float int items last length list lower map max min reject "
    "rejectattr reverse select selectattr sort string sum title trim truncate unique upper wordcount".split()
)
_METHODS = frozenset(
    "casefold count endswith find get index isalpha isdigit islower isupper items keys lower lstrip removeprefix "
    "removesuffix rstrip split splitlines startswith strip title upper values".split()
)
_STATEMENTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If)
_NUMERIC_TESTS = ("divisibleby", "even", "odd")


class _SandboxCodeGenerator(CodeGenerator):
    """The compiler of templates. What a template calls is looked up by `Sandbox.method`, not by `Sandbox.getattr`."""

    _called_node: nodes.Node | None = None

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        self._called_node = node.node
        super().visit_Call(node, frame, forward_caller=forward_caller)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        if node is not self._called_node:
            super().visit_Getattr(node, frame)
            return
        self.write("environment.method(")
        self.visit(node.node, frame)
        self.write(f", {node.attr!r})")


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja2 environment that limits time and memory in proportion to the template and its values.

    A mapping has only its keys as attributes: `task.items` is the value of the key `items`, and undefined if there is
    none. Methods of values can be called, as in `task.items()`, but not shown.

    Args:
        options: As for `jinja2.Environment`.
    """

    code_generator_class = _SandboxCodeGenerator
    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, **options: Any) -> None:
        super().__init__(optimized=False, **options)
        self.globals.clear()
        default_filters = self.filters
        self.filters = {name: default_filters[name] for name in _FILTERS}
        self.filters |= {"join": _join, "replace": _replace, "round": _round, "tojson": _to_json}
        self.tests = {**self.tests, **{name: _restrict_to_numbers(self.tests[name]) for name in _NUMERIC_TESTS}}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute `left operator right` for numbers, or `+` for two strings or two lists.

        Raises:
            SecurityError: If the operands have other types, or the result would be too large.
        """
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return super().call_binop(context, operator, left, right)  # the base class reports which name is undefined
        if operator == "+" and any(isinstance(left, kind) and isinstance(right, kind) for kind in (str, list)):
            _check_length(len(left) + len(right), "'+'")
            return left + right
        bits = [_count_bits(left, f"'{operator}'"), _count_bits(right, f"'{operator}'")]
        if (
            operator == "**"
            and isinstance(left, int)
            and isinstance(right, int)
            and bits[0] * right > _MAX_INTEGER_BITS
        ):
            raise SecurityError(f"'**' would give a number of more than {_MAX_INTEGER_BITS:,} bits")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the value of a mapping's key, or an attribute of another object; undefined for a method."""
        if isinstance(obj, dict | Mapping):
            return self.getitem(obj, attribute)
        value = super().getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute) if _is_method(value) else value

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item; undefined if there is none."""
        if isinstance(obj, dict | Mapping):
            try:
                return obj[argument]
            except (TypeError, LookupError):
                return self.undefined(obj=obj, name=argument)
        value = super().getitem(obj, argument)
        return self.undefined(obj=obj, name=argument) if _is_method(value) else value

    def method(self, obj: Any, name: str) -> Any:
        """Return an attribute that is called. A mapping's methods come before its keys."""
        return super().getattr(obj, name)

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether an object is a method of strings, lists or mappings whose result cannot exceed its inputs."""
        return (
            isinstance(getattr(obj, "__self__", None), str | list | tuple | dict)
            and getattr(obj, "__name__", "") in _METHODS
        )

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method that `is_safe_callable` allows.

        Raises:
            SecurityError: If the object is not such a method.
        """
        if not isinstance(__obj, Undefined) and not __self.is_safe_callable(__obj):
            name = getattr(__obj, "__name__", type(__obj).__name__)
            raise SecurityError(
                f"{name!r} cannot be called here; the allowed methods are {', '.join(sorted(_METHODS))}"
            )
        return __context.call(__obj, *args, **kwargs)

    def expression(self, text: str) -> tuple[Callable[[dict[str, Any]], Any], set[str]]:
        """Return a function that evaluates an expression, given values by name, and the names that the expression uses.

        Raises:
            TemplateSyntaxError: If the text is not an expression, or is nested too deeply.
        """
        with self.bounded():
            parser = Parser(self, text, state="variable")
            parsed = parser.parse_expression()
            if not parser.stream.eos:
                message = f"{parser.stream.current.value!r:.60} follows a complete expression"
                raise TemplateSyntaxError(message, parser.stream.current.lineno)
            tree = nodes.Template([nodes.Assign(nodes.Name("result", "store"), parsed)])
            tree.set_lineno(1).set_environment(self)
            names = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "load"}
            return TemplateExpression(self.from_string(tree), undefined_to_none=False), names

    def template_variables(self, text: str) -> set[str]:
        """Return the names that a template uses; `{{ ... }}`, `{% if %}` and `{% for %}` are allowed in it.

        Raises:
            TemplateSyntaxError: If the text is not a template, contains another statement, or is nested too deeply.
        """
        with self.bounded():
            tree = self.parse(text)
            _check_statements(tree)
            self.compile(tree)
            return meta.find_undeclared_variables(tree)

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Convert errors of Python's parser or compiler, which hostile input causes, to `TemplateSyntaxError`."""
        try:
            yield
        except (RecursionError, MemoryError, SyntaxError) as error:
            raise TemplateSyntaxError("nested too deeply", 1) from error
        except ValueError as error:  # an integer of thousands of digits
            raise TemplateSyntaxError(str(error).partition(";")[0], 1) from error


def _is_method(value: Any) -> bool:
    return callable(value) and not isinstance(value, Undefined)


def _check_statements(node: nodes.Node, loops: int = 0) -> None:
    for child in node.iter_child_nodes():
        if not isinstance(child, (*_STATEMENTS, nodes.Expr, nodes.Helper)):
            raise TemplateSyntaxError(
                f"only the statements 'if' and 'for' are allowed, got {type(child).__name__!r}", child.lineno
            )
        loop_depth = loops + isinstance(child, nodes.For)
        if loop_depth > _MAX_LOOP_DEPTH:
            raise TemplateSyntaxError(f"'for' may be nested at most {_MAX_LOOP_DEPTH} deep", child.lineno)
        _check_statements(child, loop_depth)


def _count_bits(value: Any, what: str) -> int:
    if not isinstance(value, int | float):
        raise SecurityError(f"{what} needs numbers, got {type(value).__name__}")
    bits = value.bit_length() if isinstance(value, int) else 0
    if bits > _MAX_INTEGER_BITS:
        raise SecurityError(f"{what} needs numbers of at most {_MAX_INTEGER_BITS:,} bits")
    return bits


def _check_length(length: int, what: str) -> None:
    if length > _MAX_CHARACTERS:
        raise SecurityError(f"{what} gives a result longer than {_MAX_CHARACTERS:,} characters")


def _restrict_to_numbers(test: Any) -> Callable[..., Any]:
    """Return the Jinja2 test restricted to numbers, because `%` on a string would format it."""

    def restricted(*values: Any) -> Any:
        for value in values:
            _count_bits(value, "this test")
        return test(*values)

    return restricted


@pass_eval_context
def _join(context: EvalContext, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    items = list(value)
    _check_length(len(items) * len(str(d)), "'join'")
    return str(filters.sync_do_join(context, items, d, attribute))


def _replace(value: Any, old: str, new: str) -> str:
    text = str(value)
    _check_length(len(text) + text.count(old) * len(new), "'replace'")
    return text.replace(old, new)


def _round(value: Any, precision: int = 0) -> float:
    _count_bits(value, "'round'")
    if abs(precision) > _MAX_DECIMALS:
        raise SecurityError(f"'round' takes at most {_MAX_DECIMALS} decimals")
    return float(round(value, precision))


def _to_json(value: Any) -> str:
    return str(htmlsafe_json_dumps(value, sort_keys=True))
