"""The reference pages, made from the code: `scripts/reference` writes them, `--check` compares.

Nothing here depends on the width of a terminal or on the version of Python, so that the pages are the same everywhere.
"""

from __future__ import annotations

import ast
import inspect
import io
import sys
import typing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
MADE = "*Made from the code by `scripts/reference`: change the code, not this page.*"
SHARED_GROUP = "which cluster, as whom"
DOORS = (
    "client",
    "client.kubeconfig",
    "client.signing",
    *(f"client.{name}" for name in ("httpx2", "httpx", "requests", "aiohttp")),
    *(f"client.{name}" for name in ("kubernetes", "kubernetes_aio", "kubernetes_asyncio", "lightkube", "kr8s", "kopf")),
    "server",
    "cel",
    "plugin.credential",
    "plugin.signer",
    "plugin.proxy",
    "testing",
)


# -- commands -------------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    from kubeauthn.cli.completion_shapes import command_parser
    from kubeauthn.cli.main import COMMANDS, EXIT_CODES
    from kubeauthn.cli.world import World

    nowhere = io.StringIO()
    world = World(stdin=nowhere, stdout=nowhere, stderr=nowhere, environ={"COLUMNS": "100"})
    yield from heading(
        "Every option", "What each command does with them, prints and means: [Commands](../commands.md)."
    )
    yield f"```\n{EXIT_CODES}\n```\n"
    shared: list[argparse.Action] = []
    for name in COMMANDS:
        parser = command_parser(name, world)
        yield f"## {name}\n"
        yield f"`{usage(parser)}`\n"
        yield f"{' '.join((parser.description or '').split())}\n"
        own = [group for group in parser._action_groups if group.title in (None, "options", "positional arguments")]
        if rows := [row for group in own for row in option_rows(group._group_actions)]:
            yield table(("option", "meaning"), rows)
        for group in parser._action_groups:
            if group.title == SHARED_GROUP:
                shared = shared or group._group_actions
                yield "And [which cluster, as whom](#which-cluster-as-whom).\n"
            elif group not in own and (rows := list(option_rows(group._group_actions))):
                yield f"{sentence(group.title or '')}\n"
                yield table(("option", "meaning"), rows)
    yield "## Which cluster, as whom\n"
    yield "Of every command that talks to a cluster; they mean what they mean in kubectl.\n"
    yield table(("option", "meaning"), option_rows(shared))


def usage(parser: argparse.ArgumentParser) -> str:
    if parser.usage:
        return parser.usage % {"prog": parser.prog}
    words = [shown(action) for action in parser._actions if not action.option_strings]
    needed = [option(action) for action in parser._actions if action.option_strings and action.required]
    before = ["--"] if words and words[-1].strip("[]…") in ("COMMAND", "ARGS") else []
    return " ".join([parser.prog, *needed, "[options]", *before, *words])


def shown(action: argparse.Action) -> str:
    name = str(action.metavar or "|".join(str(choice) for choice in action.choices or (action.dest,)))
    return {"?": f"[{name}]", "*": f"[{name}…]", "+": f"{name}…"}.get(str(action.nargs), name)


def option(action: argparse.Action) -> str:
    value = str(action.metavar or "|".join(str(choice) for choice in action.choices or (action.dest.upper(),)))
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def option_rows(actions: Iterable[argparse.Action]) -> Iterator[tuple[str, str]]:
    for action in actions:
        if action.dest != "help":
            name = option(action) if action.option_strings else shown(action)
            yield f"`{name}`", (action.help or "").replace("%%", "%")


# -- errors ---------------------------------------------------------------------------------------


def errors() -> Iterator[str]:
    from kubeauthn import cel
    from kubeauthn import errors as module

    tree = (module.__doc__ or "").split("::\n", 1)[1].split("\n\nTexts are", 1)[0]
    yield from heading(
        "Errors", "Everything that kubeauthn raises. The class says who must act; `hint` is what could be done."
    )
    yield f"```\n{inspect.cleandoc(tree)}\n```\n"
    rows = [
        (f"`{name}`", f"`{value.__bases__[0].__name__}`", attributes(value), first_line(value))
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, module.KubeauthnError)
    ]
    yield table(("class", "is a", "made with", ""), rows)
    yield "## CEL\n\n`kubeauthn.cel` stands alone and has a small tree of its own.\n"
    rows = [
        (f"`{name}`", f"`{value.__bases__[0].__name__}`", first_line(value))
        for name, value in ((name, getattr(cel, name)) for name in cel.__all__)
        if inspect.isclass(value) and issubclass(value, Exception)
    ]
    yield table(("class", "is a", ""), rows)


def attributes(cls: type) -> str:
    """The parameters that are kept, beside the message and the hint."""
    if "__init__" not in vars(cls):
        return ""
    names = [name for name in inspect.signature(cls).parameters if name not in ("message", "hint", "args", "kwargs")]
    return ", ".join(f"`{name}`" for name in names)


# -- the configuration file -----------------------------------------------------------------------


def configuration() -> Iterator[str]:
    from kubeauthn._core.authentication.json_schema import configuration_schema
    from kubeauthn._core.authentication.model import KIND
    from kubeauthn._core.authentication.schema import STRUCTS

    schema = configuration_schema()
    structs = {KIND: schema, **schema["$defs"]}
    yield from heading(
        "Configuration fields",
        "Of `AuthenticationConfiguration`, as `kubeauthn schema` gives them to editors. What they mean together, and "
        "what is checked: [the configuration file](../configuration.md).",
    )
    for name, fields in STRUCTS.items():
        struct = structs[name]
        yield f"## {name}\n"
        if text := struct.get("description"):
            yield f"{text}\n"
        yield table(
            ("field", "type", "", ""),
            [
                (
                    f"`{field}`",
                    field_type(kind, STRUCTS),
                    "required" if field in struct.get("required", ()) else "",
                    " ".join(limits_and_text(struct["properties"][field])),
                )
                for field, kind in fields.items()
            ],
        )


def field_type(kind: str, structs: Iterable[str]) -> str:
    bare = kind.removeprefix("*")
    element = bare.removeprefix("[]")
    name = f"[{element}](#{element.lower()})" if element in structs else element
    return f"list of {name}" if bare.startswith("[]") else name


def limits_and_text(schema: dict[str, Any]) -> Iterator[str]:
    if text := schema.get("description"):
        yield text
    if "const" in schema:
        yield f"Always `{schema['const']}`."
    if values := [value for value in schema.get("enum", ()) if value]:
        yield f"One of {', '.join(f'`{value}`' for value in values)}."
    if "maxItems" in schema:
        yield f"At most {schema['maxItems']}."
    if schema.get("uniqueItems"):
        yield "Each once."


# -- metrics --------------------------------------------------------------------------------------


def metrics() -> Iterator[str]:
    yield from heading(
        "Metrics", "In Prometheus' text format. Names that begin with `rest_client` or `apiserver` are Kubernetes' own."
    )
    yield "## Of a client\n"
    yield "`kubeauthn.client.prometheus.install()` counts in your own registry (extra `prometheus`).\n"
    yield table(("metric", "type", "labels", ""), client_metrics())
    yield "## Of `kubeauthn serve`\n\nAt `/metrics`, added up over all workers ([Serving](../serve.md)).\n"
    yield table(("metric", "type", "labels", ""), sorted(server_metrics()))


def client_metrics() -> Iterator[tuple[str, str, str, str]]:
    from prometheus_client import CollectorRegistry

    from kubeauthn.client.prometheus import PrometheusExecMetrics

    registry = CollectorRegistry()
    PrometheusExecMetrics(registry)
    for collector in dict.fromkeys(registry._names_to_collectors.values()):
        described: Any = collector
        (family,) = described.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield f"`{name}`", family.type, labels(described._labelnames), family.documentation


def server_metrics() -> Iterator[tuple[str, str, str, str]]:
    """Where the server's source names a family: `registry.counter(name, text, labels)`."""
    for path in sorted((ROOT / "src/kubeauthn/server").glob("*.py")):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            if called in ("counter", "gauge", "histogram") and isinstance(node, ast.Call) and len(node.args) > 1:
                module = import_module(f"kubeauthn.server.{path.stem}")
                name, text, *rest = (literal(argument, module) for argument in node.args)
                yield f"`{name}`", called, labels(rest[0] if rest else ()), text


def literal(node: ast.expr, module: ModuleType) -> Any:
    """A constant, a name of the module, a tuple of such, or an f-string of such."""
    if isinstance(node, ast.Name):
        return getattr(module, node.id)
    if isinstance(node, ast.Tuple):
        return tuple(literal(element, module) for element in node.elts)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(literal(part, module)) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return literal(node.value, module)
    return ast.literal_eval(node)


def labels(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# -- Python API -----------------------------------------------------------------------------------


def python_api() -> Iterator[str]:
    yield from heading(
        "Python API", "The doors, and what each exports. Whatever is not here is private and may change."
    )
    for door in DOORS:
        module = import_module(f"kubeauthn.{door}")
        yield f"## kubeauthn.{door}\n"
        yield f"{first_line(module)}\n"
        for name in module.__all__:
            yield from exported(name, getattr(module, name))


def exported(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"### {name}\n\n```\nclass {name}{signature(value)}\n```\n"
        yield from paragraph(first_line(value))
        if rows := list(members(value)):
            yield table(("", ""), rows)
    elif inspect.ismodule(value):
        yield f"### {name}\n\n{first_line(value)}\n"
        functions = [(key, entry) for key, entry in vars(value).items() if inspect.isfunction(entry)]
        own = [(k, e) for k, e in functions if not k.startswith("_") and e.__module__ == value.__name__]
        yield table(("", ""), [(f"`{key}{signature(entry)}`", first_line(entry)) for key, entry in own])
    elif callable(value):
        word = "async def" if inspect.iscoroutinefunction(value) else "def"
        yield f"### {name}\n\n```\n{word} {name}{signature(value)}\n```\n"
        yield from paragraph(first_line(value))
    else:
        yield f"### {name}\n\n`{value!r}`\n"


def members(cls: type) -> Iterator[tuple[str, str]]:
    # Those of a private class that it inherits are its own for whoever uses it.
    private = [base for base in cls.__mro__[1:] if base.__name__.startswith("_") or "._" in base.__module__]
    own = [base for base in private if base.__module__.startswith("kubeauthn.testing")]
    found = {name: value for base in (*reversed(own), cls) for name, value in vars(base).items()}
    for name, value in found.items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"`{name}`", first_line(value)
        elif inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod)):
            function = inspect.unwrap(getattr(cls, name))
            word = "async " if inspect.iscoroutinefunction(function) else ""
            yield (
                f"`{word}{name}{signature(function, bound=not isinstance(value, staticmethod))}`",
                first_line(function),
            )


def signature(value: Any, *, bound: bool = False) -> str:
    if typing.is_typeddict(value) or (inspect.isclass(value) and hasattr(value, "__match_args__")):
        return f"({', '.join(f'{name}: {kind}' for name, kind in field_annotations(value))})"
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    parameters = list(found.parameters.values())
    if bound and parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    result = Shown.of(found.return_annotation)
    if inspect.isclass(value):
        result = inspect.Signature.empty
    return str(found.replace(parameters=[plain(parameter) for parameter in parameters], return_annotation=result))


def field_annotations(cls: Any) -> Iterator[tuple[str, str]]:
    """The fields of a record, or the keys of a typed dictionary."""
    written = inspect.get_annotations(cls)
    names = getattr(cls, "__match_args__", ()) or written
    for name in names:
        kind = written.get(name, "Any")
        yield name, str(getattr(kind, "__forward_arg__", kind))


def plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """With a default that reads the same in every run: `<function …>` has an address."""
    parameter = parameter.replace(annotation=Shown.of(parameter.annotation))
    default = parameter.default
    if default is inspect.Parameter.empty or isinstance(default, (str, int, float, bool, tuple, type(None))):
        return parameter
    return parameter.replace(default=Shown(getattr(default, "__qualname__", f"{type(default).__name__}(…)")))


class Shown:
    """A default by its name, an annotation as it is written."""

    @classmethod
    def of(cls, annotation: Any) -> Any:
        return cls(annotation) if isinstance(annotation, str) else annotation

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# -- Markdown -------------------------------------------------------------------------------------


def heading(title: str, text: str) -> Iterator[str]:
    yield f"# {title}\n"
    yield f"{text}\n"
    yield f"{MADE}\n"


def paragraph(text: str) -> Iterator[str]:
    if text:
        yield f"{text}\n"


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}:"


def first_line(value: Any) -> str:
    """The first sentence or paragraph of a docstring, on one line; nothing where the docstring is not its own."""
    text = getattr(value, "__doc__", None) or ""
    if inspect.isclass(value) and "__doc__" not in vars(value):
        text = ""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split()).replace("<", "&lt;")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "errors": errors,
    "configuration": configuration,
    "metrics": metrics,
    "python-api": python_api,
}


def page(name: str) -> str:
    return "\n".join(PAGES[name]())


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: scripts/reference [--check]", file=sys.stderr)
        return 2
    stale = []
    for name in PAGES:
        path, text = FOLDER / f"{name}.md", page(name)
        if arguments:
            stale += [name] if not path.exists() or path.read_text() != text else []
        else:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"docs/reference/{name}.md is not what the code gives: run scripts/reference")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
