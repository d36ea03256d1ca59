"""Which libraries there are, and what each adds: functions, types, macros.

A library is named "strings" for its newest version or "strings@2" for one that was. Its module is imported when it is
first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from . import macros, macros_extensions
from .errors import CelError
from .macros import Expander, MacroKey
from .overloads import Overload

__all__ = ["KUBERNETES_LIBRARIES", "Library", "load"]


class Library:
    """A loaded library."""

    __slots__ = ("macros", "name", "overloads", "types")

    def __init__(
        self, name: str, overloads: tuple[Overload, ...], types: tuple[str, ...], expanders: Mapping[MacroKey, Expander]
    ) -> None:
        self.name = name
        self.overloads = overloads
        self.types = types
        self.macros = expanders


_MODULES: dict[str, tuple[str, ...]] = {
    "standard": ("operators", "basics", "conversions", "timestamps"),
    "optional": ("optionals",),
    "strings": ("strings",),
    "sets": ("sets",),
    "lists": ("lists",),
    "two-var-comprehensions": ("comprehensions",),
    "bindings": (),
    "block": (),
    "encoders": ("encoders",),
    "math": ("maths",),
    "network": ("network",),
    "kubernetes.authz": ("authz",),
    "kubernetes.authzSelectors": ("authz_selectors",),
    "kubernetes.format": ("named_formats",),
    "kubernetes.lists": ("kubernetes_lists",),
    "kubernetes.net.cidr": ("cidr",),
    "kubernetes.net.ip": ("ip",),
    "kubernetes.quantity": ("quantity",),
    "kubernetes.regex": ("kubernetes_regex",),
    "kubernetes.semver": ("semver",),
    "kubernetes.urls": ("urls",),
}
_MACROS: dict[str, Mapping[MacroKey, Expander]] = {
    "standard": macros.STANDARD_MACROS,
    "optional": macros.OPTIONAL_MACROS,
    "lists": macros.LIST_MACROS,
    "two-var-comprehensions": macros.TWO_VARIABLE_MACROS,
    "bindings": macros_extensions.BINDING_MACROS,
    "math": macros_extensions.MATH_MACROS,
    "block": macros_extensions.BLOCK_MACROS,
}

# From which minor version of Kubernetes 1 to which (exclusive) a library is there.
KUBERNETES_LIBRARIES: tuple[tuple[str, int, int], ...] = (
    ("standard", 0, 99),
    ("kubernetes.urls", 0, 99),
    ("kubernetes.regex", 0, 99),
    ("kubernetes.lists@0", 0, 37),
    ("kubernetes.authz", 27, 99),
    ("optional@1", 28, 33),
    ("optional@2", 33, 99),
    ("kubernetes.quantity", 28, 99),
    ("strings@0", 0, 29),
    ("strings@2", 29, 99),
    ("sets", 29, 99),
    ("kubernetes.net.ip", 30, 99),
    ("kubernetes.net.cidr", 30, 99),
    ("kubernetes.format", 31, 99),
    ("kubernetes.authzSelectors", 31, 99),
    ("two-var-comprehensions", 32, 99),
    ("kubernetes.semver", 33, 99),
    ("lists@3", 34, 99),
    ("kubernetes.lists@1", 37, 99),
)

_loaded: dict[str, Library] = {}


def load(name: str) -> Library:
    """The library of that name."""
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = _load(name)
    return found


def _load(name: str) -> Library:
    base, _, version = name.partition("@")
    modules = _MODULES.get(base)
    if modules is None or (version and not version.isdigit()):
        raise CelError(f"unknown library {name!r}: there are {', '.join(_MODULES)}")
    overloads: tuple[Overload, ...] = ()
    types: tuple[str, ...] = ()
    for module_name in modules:
        module: Any = import_module(f".library.{module_name}", __package__)
        overloads += tuple(module.overloads(int(version))) if version else tuple(module.OVERLOADS)
        types += tuple(module.TYPES)
    return Library(name, overloads, types, _MACROS.get(base, {}))
