"""SOCKS5 as the proxy's side could say it, cut anywhere, and wrong."""

from __future__ import annotations

import pytest

from kubeauthn._io.carrier.socks import Socks5
from kubeauthn.errors import UpstreamError

GRANTED = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50"


def test_without_a_password():
    talk = Socks5("api.test", 6443, None, "")
    assert talk.greeting() == b"\x05\x01\x00"
    assert talk.feed(b"\x05\x00") == b"\x05\x01\x00\x03\x08api.test\x19\x2b"
    assert talk.feed(GRANTED) == b""
    assert talk.done


def test_byte_by_byte_with_a_password():
    talk = Socks5("127.0.0.1", 443, "jane", "word")
    assert talk.greeting() == b"\x05\x02\x00\x02"
    said = b"".join(talk.feed(bytes([byte])) for byte in b"\x05\x02\x01\x00" + GRANTED)
    assert said == b"\x01\x04jane\x04word" + b"\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb"
    assert talk.done


@pytest.mark.parametrize("bound", [b"\x01" + bytes(4), b"\x04" + bytes(16), b"\x03\x03abc"])
def test_whatever_address_the_proxy_names(bound: bytes):
    talk = Socks5("::1", 443, None, "")
    assert talk.feed(b"\x05\x00").startswith(b"\x05\x01\x00\x04" + bytes(15) + b"\x01")
    talk.feed(b"\x05\x00\x00" + bound + b"\x00\x50")
    assert talk.done


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([b"\x04\x00"], "does not speak SOCKS5"),
        ([b"\x05\xff"], "demands authentication"),
        ([b"\x05\x02"], "demands authentication"),
        ([b"\x05\x00", b"\x05\x05"], "connection refused"),
        ([b"\x05\x00", b"\x05\x63"], "unknown reason"),
        ([b"\x05\x00", b"HTTP/1.1"], "does not speak SOCKS5"),
        ([b"\x05\x00", b"\x05\x00\x00\x09\x00"], "is not SOCKS5"),
        ([b"\x05\x00", GRANTED + b"more"], "more than its answer"),
    ],
)
def test_refusals(replies: list[bytes], text: str):
    talk = Socks5("api.test", 443, None, "")
    for reply in replies[:-1]:
        talk.feed(reply)
    with pytest.raises(UpstreamError, match=text):
        talk.feed(replies[-1])
    assert not talk.done


def test_a_wrong_password():
    talk = Socks5("api.test", 443, "jane", "word")
    talk.feed(b"\x05\x02")
    with pytest.raises(UpstreamError, match="does not accept the user and password"):
        talk.feed(b"\x01\x01")


@pytest.mark.parametrize(("user", "password"), [("", "x"), ("x" * 256, "x"), ("x", "")])
def test_what_socks_cannot_say(user: str, password: str):
    with pytest.raises(UpstreamError, match="1 to 255 bytes"):
        Socks5("api.test", 443, user, password)
