"""Looks into the Python that is generated for an expression: whose names are in it?"""

from __future__ import annotations

import ast

from kubeauthn.cel.grown_lists import Grown
from kubeauthn.cel.outside import Outside
from kubeauthn.cel.runtime import namespace

_FIXED = frozenset((
    "run", "V", "c", "lim", "dl", "room", "rounds", "outside", "grown", "tick", "first_limit", "e",
    # what it uses of Python
    "type", "len", "iter", "next", "enumerate", "hasattr", "isinstance", "abs", "min", "max", "range",
    "str", "int", "float", "bool", "bytes", "dict", "list", "tuple", "set", "frozenset", "KeyError",
)) | frozenset(namespace())  # fmt: skip
_ATTRIBUTES = frozenset((
    "get", "value", "error", "fields", "append", "ns", "startswith", "endswith", "isascii", "split",
)) | {name for kind in (Outside, Grown) for name in vars(kind) if not name.startswith("_")}  # fmt: skip


def foreign_names(python: str) -> set[str]:
    """Names in generated source that the generator did not make: parts of an expression that became code."""
    foreign: set[str] = set()
    for node in ast.walk(ast.parse(python)):
        if isinstance(node, ast.Attribute):
            foreign |= {node.attr} - _ATTRIBUTES
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.Lambda, ast.ClassDef, ast.Global)):
            foreign.add(type(node).__name__)
        elif isinstance(node, ast.FunctionDef):
            foreign |= {name for name in (node.name, *(arg.arg for arg in node.args.args)) if not _own(name)}
        elif isinstance(node, ast.Name) and not _own(node.id):
            foreign.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name and not _own(node.name):
            foreign.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg and node.arg != "deadline":
            foreign.add(node.arg)
    return foreign


def _own(name: str) -> bool:
    if name in _FIXED:
        return True
    letter, number = name[:1], name[1:].removesuffix("x")
    return letter in "tvkf" and number.isascii() and number.isdigit()
