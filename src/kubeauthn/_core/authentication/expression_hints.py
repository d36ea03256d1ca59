"""What an expression that compiles will do that its author may not have meant. Judged by its tree alone."""

from __future__ import annotations

from kubeauthn.cel import CelError
from kubeauthn.cel.ast import Call, Ident, Literal, Node, Select, walk
from kubeauthn.cel.go_text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from kubeauthn.cel import Program

ALWAYS_THERE = frozenset(("iss", "aud", "exp", "sub"))
"""Claims that need no `has`: a token without one of the first three is refused before, and ID tokens have the last."""

_ARITHMETIC = frozenset(("_+_", "_-_", "_*_", "_/_", "_%_"))
_UNTYPED = frozenset(("dyn", "any", "google.protobuf.Any"))
_MAY_BE_TEXT = _UNTYPED | {"string", "wrapper(string)", "google.protobuf.StringValue"}

ClaimPath = tuple[str, ...]

MOST_NAMED = 20
"""Claims of one expression that are pointed out: who guards these will look at the rest."""


def unguarded_claims(program: Program, required: Collection[ClaimPath] = ()) -> list[ClaimPath]:
    """`claims.a.b` that the expression takes without asking anywhere whether it is there, each once.

    `required` are those that a rule makes sure of.
    """
    taken: list[ClaimPath] = []
    guarded: set[ClaimPath] = set(required)
    for node in walk(program.ast):
        path = _claim_path(node)
        if isinstance(node, Select) and node.test_only:
            guarded.add(path)
        elif isinstance(node, Call) and node.function in ("_?._", "_[?_]", "@in"):
            guarded.update(_asked_for(node))
        elif path:
            taken.append(path)
    # Only the shortest: where `claims.a` is missing nobody gets as far as `claims.a.b`.
    found: list[ClaimPath] = []
    for path in sorted(dict.fromkeys(taken), key=len):  # stable: those of one length stay in their order
        covered = any(path[: len(shorter)] == shorter for shorter in found)
        if path not in guarded and path[0] not in ALWAYS_THERE and not covered:
            found.append(path)
        if len(found) == MOST_NAMED:
            break
    return found


def required_claims(program: Program) -> Iterator[ClaimPath]:
    """Claims that are there wherever this rule is true: the parts of it, joined by &&, that are a `has`."""
    waiting = [program.ast]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == "_&&_":
            waiting.extend(node.args)
        elif isinstance(node, Select) and node.test_only and (path := _claim_path(node)):
            yield path


def shown_path(path: ClaimPath) -> str:
    """As an expression would have it: `claims.a.b`, `claims["kubernetes.io"].namespace`."""
    return "claims" + "".join(f".{name}" if name.isidentifier() else f"[{quote(name)}]" for name in path)


def asking_for(path: ClaimPath) -> str:
    """The expressions that ask whether a claim is there, or take it where it is."""
    *before, name = path
    parent = shown_path(tuple(before))
    if name.isidentifier():
        return f"has({parent}.{name}), or {parent}.?{name}.orValue(…)"
    return f"{quote(name)} in {parent}, or {parent}[?{quote(name)}].orValue(…)"


def _claim_path(node: Node) -> ClaimPath:
    """`a`, `b` of `claims.a.b` or `claims["a"].b`; () for anything else."""
    names: list[str] = []
    while True:
        if isinstance(node, Select):
            names.append(node.field)
            node = node.operand
        elif isinstance(node, Call) and node.function == "_[_]" and _is_text(node.args[1]):
            names.append(_text(node.args[1]))
            node = node.args[0]
        else:
            break
    is_claims = isinstance(node, Ident) and node.name == "claims"
    return tuple(reversed(names)) if is_claims else ()


def _asked_for(node: Call) -> Iterator[ClaimPath]:
    """What `x.?name`, `x[?"name"]` and `"name" in x` ask about."""
    name, of = reversed(node.args) if node.function != "@in" else node.args
    if not _is_text(name):
        return
    around = _claim_path(of)
    if around or (isinstance(of, Ident) and of.name == "claims"):
        yield (*around, _text(name))


def _is_text(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


def _text(node: Node) -> str:
    return str(node.value) if isinstance(node, Literal) else ""


# -- types ----------------------------------------------------------------------------------------


def type_of_no_use(program: Program, *, is_list: bool) -> str:
    """The type of a mapping's expression where it can be no text (nor list of texts), whatever the token is; or ""."""
    name = str(program.output_type)
    if name in _MAY_BE_TEXT or (is_list and name == "null_type"):
        return ""
    if is_list and name.startswith("map(") and name.removeprefix("map(").partition(", ")[0] in _MAY_BE_TEXT:
        return ""  # the names of its fields
    inner = name.removeprefix("list(").removesuffix(")")
    return "" if is_list and inner != name and inner in _MAY_BE_TEXT else name


# -- truth ----------------------------------------------------------------------------------------


def constant_truth(program: Program, variable: str) -> bool | None:
    """What a rule says whatever the token is; None if that depends, as it mostly does."""
    if not any(isinstance(node, Ident) and node.name == variable for node in walk(program.ast)):
        try:
            value = program.evaluate({variable: {}}).value
        except CelError:
            return False  # it fails, so it is never true
        return value is True
    return _truth(program.ast)


def _truth(node: Node) -> bool | None:
    if isinstance(node, Literal):
        return node.value if isinstance(node.value, bool) else None
    if isinstance(node, Select) and node.test_only:
        return True if _claim_path(node) in (("iss",), ("aud",), ("exp",)) else None
    if not isinstance(node, Call):
        return None
    if node.function == "!_":
        truth = _truth(node.args[0])
        return None if truth is None else not truth
    if node.function == "_&&_":
        return False if _contradicts_itself(node) else _all(node.args)
    if node.function == "_||_":
        if any(_truth(part) is True for part in node.args):
            return True
        return False if all(_truth(part) is False for part in node.args) else None
    if node.function == "_?_:_":
        condition, first, second = node.args
        truth = _truth(condition)
        if truth is not None:
            return _truth(first if truth else second)
        return _truth(first) if _truth(first) == _truth(second) else None
    return None


def _all(parts: list[Node]) -> bool | None:
    truths = [_truth(part) for part in parts]
    return False if False in truths else True if all(truths) else None


def _contradicts_itself(node: Call) -> bool:
    """`claims.x == "a" && claims.x == "b"`."""
    wanted: dict[tuple[str, ...], object] = {}
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == "_&&_":
            waiting.extend(part.args)
        elif isinstance(part, Call) and part.function == "_==_":
            for side, other in (part.args, reversed(part.args)):
                path = _claim_path(side) or _user_path(side)
                if path and _is_text(other) and wanted.setdefault(path, _text(other)) != _text(other):
                    return True
    return False


def _user_path(node: Node) -> tuple[str, ...]:
    if isinstance(node, Select) and isinstance(node.operand, Ident) and node.operand.name == "user":
        return ("user", node.field)
    return ()


# -- numbers --------------------------------------------------------------------------------------


def integer_arithmetic(program: Program) -> ClaimPath:
    """A claim that is added to, multiplied with, … a whole number: claims are doubles, and the two do not mix."""
    for node in walk(program.ast):
        if isinstance(node, Call) and node.function in _ARITHMETIC and len(node.args) == 2:
            for side, other in (node.args, reversed(node.args)):
                is_whole = isinstance(other, Literal) and type(other.value) is int
                if is_whole and str(side.type) in _UNTYPED and (path := _claim_path(side)):
                    return path
    return ()


def mentions(program: Program, text: str) -> bool:
    """Whether a constant of the expression holds this text."""
    return any(
        isinstance(node, Literal) and isinstance(node.value, str) and text in node.value for node in walk(program.ast)
    )


def begins_with(program: Program) -> str:
    """The text with which every value of the expression begins, as far as its tree says."""
    node = program.ast
    while isinstance(node, Call) and node.function == "_+_":
        node = node.args[0]
    return _text(node)
