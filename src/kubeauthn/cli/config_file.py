"""A file that was named on the command line, read within limits; `-` is standard input."""

from __future__ import annotations

from contextlib import contextmanager

from kubeauthn.cli.arguments import shown_path
from kubeauthn.errors import EnvironmentFailure, MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn.cli.world import World

STDIN = "<stdin>"


@contextmanager
def with_patterns() -> Iterator[None]:
    """Around whatever compiles or evaluates expressions: one with a pattern needs a library that may be missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "re2":
            raise
        raise MissingExtra("google-re2", "cel") from None


def shown_name(path: str) -> str:
    return STDIN if path == "-" else shown_path(path)


def read(path: str, limit: int, world: World) -> bytes:
    """The content. Raises EnvironmentFailure."""
    if path == "-":
        content = world.read_stdin(limit)
        if len(content) > limit:
            raise EnvironmentFailure(f"standard input holds more than {limit} bytes")
        return content
    from kubeauthn._io.files import read_bounded

    try:
        return read_bounded(path, limit)
    except EnvironmentFailure as error:
        shown = shown_path(path)
        address = path.startswith(("https://", "http://"))
        if shown == path and not path.startswith("{") and not address:
            raise
        reason = str(error).rpartition(": ")[2]
        hint = "the name of a file belongs here" + (", and no address: fetch it first" if address else "")
        raise EnvironmentFailure(f"{shown}: {reason}", hint=hint) from None


def without_content(text: str) -> str:
    """A fault that Kubernetes prints with the whole file in it: what is not a configuration may be a secret."""
    head, quoted, _ = text.partition(" is missing in '")
    return f"{head} is missing in the file" if quoted and head.startswith("Object '") else text


def read_configuration(path: str, world: World, kubernetes: str) -> AuthenticationConfiguration:
    """A configuration without fault. Raises AuthenticationConfigError or EnvironmentFailure."""
    from kubeauthn._core.authentication.decode import TEXT_BYTES
    from kubeauthn._core.authentication.load import load_configuration
    from kubeauthn.errors import AuthenticationConfigError

    content = read(path, TEXT_BYTES, world)
    try:
        return load_configuration(content, kubernetes=kubernetes)
    except AuthenticationConfigError as error:
        first = error.errors[0]
        more = f", and {len(error.errors) - 1} more" if len(error.errors) > 1 else ""
        place = f":{first.line}:{first.column}" if first.line else ""
        raise EnvironmentFailure(
            f"{shown_name(path)}{place}: {without_content(first.text)}{more}",
            hint=f"{world.program} check {shown_path(path)} says all of it",
        ) from None


def checked_version(version: str) -> str:
    """A Kubernetes version whose rules are known. Raises UsageError."""
    from kubeauthn._core.authentication.release import Release

    return f"1.{Release.named(version).minor}"
