"""Who may ask `/debug/explain`: only the machine itself, and nobody who speaks for another."""

from __future__ import annotations

import pytest

from kubeauthn.server.context import Context, ServeOptions
from kubeauthn.server.debug_explain import routes
from kubeauthn.server.http_message import GivenScope, HeaderList, Request, Response
from kubeauthn.server.metrics import Registry
from kubeauthn.server.runtime import Runtime

HERE = 503
"""It is answered, and there is no configuration yet."""


def status(client: str, *headers: tuple[str, str], switched_on: bool = True) -> int:
    runtime = Runtime()
    found = routes(Context(runtime.switch, ServeOptions(debug_explain=switched_on), Registry(), runtime))
    if not found:
        return 0
    request = Request("POST", "/debug/explain", HeaderList(list(headers)), b"token", GivenScope("", client))
    answer = found["/debug/explain"](request)
    assert isinstance(answer, Response)
    return answer.status


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("127.0.0.1:5000", HERE),
        ("127.9.9.9:1", HERE),
        ("[::1]:5000", HERE),
        ("::1:5000", HERE),
        ("192.0.2.1:5000", 404),
        ("[2001:db8::1]:5000", 404),
        ("0.0.0.0:5000", 404),
        ("", 404),  # a unix socket: whoever may open it, also for others
        ("localhost:5000", 404),
    ],
)
def test_only_peers_on_loopback(client: str, expected: int) -> None:
    assert status(client) == expected


@pytest.mark.parametrize(
    "name",
    [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
        "via",
        "origin",
        "referer",
        "sec-fetch-site",
    ],
)
@pytest.mark.parametrize("value", ["127.0.0.1", ""])
def test_nobody_who_speaks_for_another(name: str, value: str) -> None:
    assert status("127.0.0.1:5000", (name, value)) == 404


def test_it_is_not_there_unless_it_is_switched_on() -> None:
    assert status("127.0.0.1:5000", switched_on=False) == 0
