"""Send one request with the credentials of the kubeconfig, and print the answer's body as it comes.

The answer of a watch is printed piece by piece, without a time limit.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from kubeauthn._core import limits
from kubeauthn.cli import failure
from kubeauthn.cli.client_options import access_options, add_client_options
from kubeauthn.cli.text import escaped
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    import httpx2

    from kubeauthn.cli.world import World

HELP = "one request with the kubeconfig's own credentials"

BODY_BYTES = 16 << 20
"""More than any API server takes."""

_STREAMS = ("watch", "follow")


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [METHOD] PATH [-f FILE] [-H HEADER] [-i] [options]"
    parser.add_argument(
        "request", nargs="+", metavar="[METHOD] PATH", help="GET, and a path such as /api/v1/namespaces?limit=5"
    )
    parser.add_argument("-f", "--filename", metavar="FILE", help="the request's body; - for standard input")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="'NAME: VALUE'", help="a request header; may repeat"
    )
    parser.add_argument("-i", "--include", action="store_true", help="print the answer's status and headers too")
    add_client_options(parser)


def run(arguments: Namespace, world: World) -> int:
    # 1. What is asked, before anything is opened.
    method, path = _method_and_path(arguments.request)
    headers = [_header(text) for text in arguments.header]
    body = _body(arguments, method, world)
    if body is not None and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", _content_type(arguments.filename, method)))
    options = access_options(arguments)

    # 2. Whom to ask. No plugin runs yet.
    from kubeauthn.cli.log import show_warnings
    from kubeauthn.cli.request import connection, read_bounded_body, refusal
    from kubeauthn.client.access import open_access

    show_warnings(world)
    access = open_access(**options, stdin_taken="used by -f -" if arguments.filename == "-" else None)

    # 3. The request. A stream may be silent for as long as it likes.
    timeouts = (limits.HTTP_SECONDS, None if is_stream(path) else limits.HTTP_SECONDS)
    with connection(access) as api:
        from contextlib import closing

        from httpx2 import InvalidURL, Timeout

        timeout = Timeout(timeouts[0], read=timeouts[1])
        try:
            request = api.build_request(method, path, content=body, headers=headers, timeout=timeout)
        except InvalidURL as error:
            raise UsageError(f"this is no path that can be requested: {error}") from None
        with closing(api.send(request, stream=True)) as response:
            if arguments.include:
                _print_head(response, world)
            if response.is_success:
                last = b""
                for chunk in response.iter_bytes():
                    world.write(chunk)
                    last = chunk or last
                if world.stdout.isatty() and not last.endswith(b"\n"):
                    world.say()  # so that the prompt does not stand behind the answer
                return failure.YES
            refused = read_bounded_body(response, limits.HTTP_DOCUMENT_BYTES)
            if arguments.include:
                world.write(refused if refused.endswith(b"\n") else refused + b"\n")
            raise refusal(response, refused)


def is_stream(path: str) -> bool:
    """A watch, or a log that is followed."""
    query = parse_qs(urlsplit(path).query)
    return any(query.get(name, [""])[-1].lower() in ("true", "1") for name in _STREAMS)


def _method_and_path(words: list[str]) -> tuple[str, str]:
    if len(words) > 2:
        raise UsageError(f"expected a method and a path, got {len(words)} words")
    method, path = ("GET", words[0]) if len(words) == 1 else words
    if not (method.isascii() and method.isalpha()):
        raise UsageError(f"expected a method such as GET or POST, got {escaped(method)}")
    if not path.startswith("/") or path.startswith("//"):
        raise UsageError(
            f"expected a path that begins with one /, got {escaped(path)}",
            hint="the server comes from the kubeconfig; --server names another",
        )
    return method.upper(), path


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    # The value is not shown: it may be an Authorization.
    if not colon or not name or not all(c.isascii() and (c.isalnum() or c in "!#$%&'*+-.^_`|~") for c in name):
        raise UsageError("-H takes 'NAME: VALUE'")
    if not (value.isascii() and value.isprintable()):
        raise UsageError(f"the value of header {name} has characters that no header may carry")
    return name, value


def _body(arguments: Namespace, method: str, world: World) -> bytes | None:
    if arguments.filename is None:
        return None
    if method in ("GET", "HEAD"):
        raise UsageError(f"{method} carries no body", hint="name the method before the path: POST, PUT, PATCH, DELETE")
    if arguments.filename != "-":
        from kubeauthn._io.files import read_bounded

        return read_bounded(arguments.filename, BODY_BYTES)
    body = world.read_stdin(BODY_BYTES)
    if len(body) > BODY_BYTES:
        raise UsageError(f"the body on standard input is larger than {BODY_BYTES} bytes")
    return body


def _content_type(filename: str, method: str) -> str:
    """Kubernetes wants to be told which kind of patch it is; a merge patch is the one that is a plain document."""
    if method == "PATCH":
        return "application/merge-patch+json"
    return "application/yaml" if filename.lower().endswith((".yaml", ".yml")) else "application/json"


def _print_head(response: httpx2.Response, world: World) -> None:
    world.say(escaped(f"{response.http_version} {response.status_code} {response.reason_phrase}"))
    for name, value in response.headers.multi_items():
        world.say(escaped(f"{name}: {value}"))
    world.say()
    world.stdout.flush()
