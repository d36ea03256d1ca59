"""HTTP/1.1 heads and bodies: what is carried, and everything that could be read in two ways and is not."""

from __future__ import annotations

import random

import pytest

from kubeauthn._core import http1
from kubeauthn._core.http1_bodies import ChunkedBody, LengthBody, OpenBody, body_of
from kubeauthn.errors import HttpMessageError


def request(*lines: bytes, first: bytes = b"POST /api HTTP/1.1", host: bytes = b"Host: api.test") -> bytes:
    return b"\r\n".join((first, host, *lines))


SMUGGLED = {
    "both lengths": request(b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    "both lengths, the other order": request(b"Transfer-Encoding: chunked", b"Content-Length: 5"),
    "two lengths that differ": request(b"Content-Length: 5", b"Content-Length: 6"),
    "two lengths that agree": request(b"Content-Length: 5", b"Content-Length: 5"),
    "a list of lengths": request(b"Content-Length: 5, 5"),
    "a length with a sign": request(b"Content-Length: +5"),
    "a negative length": request(b"Content-Length: -5"),
    "a hexadecimal length": request(b"Content-Length: 0x5"),
    "an empty length": request(b"Content-Length:"),
    "a length with an underscore": request(b"Content-Length: 1_0"),
    "a length in other digits": request("Content-Length: ٥".encode()),
    "a length without end": request(b"Content-Length: " + b"9" * 19),
    "a coding that hides chunked": request(b"Transfer-Encoding: xchunked"),
    "a coding before chunked": request(b"Transfer-Encoding: gzip, chunked"),
    "chunked twice": request(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "identity": request(b"Transfer-Encoding: identity"),
    "a vertical tab before chunked": request(b"Transfer-Encoding: \x0bchunked"),
    "a blank before the colon": request(b"Content-Length : 5"),
    "a line that continues": request(b"X-A: b", b" Content-Length: 5"),
    "a tab that continues": request(b"X-A: b", b"\tc"),
    "a newline alone": request(b"X-A: b\nContent-Length: 5"),
    "a carriage return alone": request(b"X-A: b\rContent-Length: 5"),
    "a null": request(b"X-A: b\0c"),
    "a null in a name": request(b"X\0A: b"),
    "a delete character": request(b"X-A: b\x7f"),
    "no colon": request(b"X-A"),
    "no name": request(b": b"),
    "a name with a blank": request(b"X A: b"),
    "no host": b"GET / HTTP/1.1",
    "two hosts": request(b"host: evil.test"),
    "HTTP/1.0": request(first=b"GET / HTTP/1.0"),
    "HTTP/2": request(first=b"PRI * HTTP/2.0"),
    "no version": request(first=b"GET /"),
    "two blanks": request(first=b"GET  / HTTP/1.1"),
    "a blank in the target": request(first=b"GET /a b HTTP/1.1"),
    "a tab in the request line": request(first=b"GET\t/ HTTP/1.1"),
    "a whole address": request(first=b"GET https://evil.test/ HTTP/1.1"),
    "a tunnel": request(first=b"CONNECT evil.test:443 HTTP/1.1"),
    "a star": request(first=b"GET * HTTP/1.1"),
    "a method with a colon": request(first=b"GE:T / HTTP/1.1"),
    "a target outside ASCII": request(first="GET /ü HTTP/1.1".encode()),
    "a hop that takes the length away": request(b"Connection: content-length", b"Content-Length: 5"),
    "a hop that takes the credential away": request(b"Connection: close, Authorization", b"Authorization: Bearer t"),
    "a hop that takes the host away": request(b"Connection: host"),
    "too many fields": request(*[b"X: y"] * (http1.HEAD_FIELDS + 1)),
    "too large": request(b"X: " + b"y" * http1.HEAD_BYTES),
}


@pytest.mark.parametrize("head", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_a_request_that_could_be_read_in_two_ways_is_refused(head: bytes):
    with pytest.raises(HttpMessageError) as caught:
        http1.parse_request(head)
    assert 400 <= caught.value.status <= 505
    assert "Bearer t" not in str(caught.value)


def test_what_is_not_changed_goes_on_as_it_came():
    head = http1.parse_request(
        request(b"X-Odd:   kept as it is", b"Accept: */*", b"accept: again", first=b"GET /a?b=c HTTP/1.1")
    )
    assert http1.render_request(head, head.target, frozenset()) == (
        b"GET /a?b=c HTTP/1.1\r\nHost: api.test\r\nX-Odd:   kept as it is\r\nAccept: */*\r\naccept: again\r\n\r\n"
    )
    assert head.value(b"accept") == b"*/*"


def test_hop_by_hop_fields_stay_on_their_hop():
    head = http1.parse_request(
        request(
            b"Connection: keep-alive, X-Private", b"X-Private: 1", b"Keep-Alive: 5", b"TE: trailers",
            b"Proxy-Authorization: Basic eA==", b"Upgrade: websocket", b"X-Public: 2", b"Transfer-Encoding: chunked",
        )
    )  # fmt: skip
    out = http1.render_request(head, head.target, frozenset({b"x-public"}), [(b"X-New", b"3")])
    assert out == b"POST /api HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nX-New: 3\r\n\r\n"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((b"Connection: Upgrade", b"Upgrade: SPDY/3.1"), b"SPDY/3.1"),
        ((b"Connection: keep-alive, upgrade", b"Upgrade: websocket"), b"websocket"),
        ((b"Upgrade: websocket",), b""),
        ((b"Connection: Upgrade",), b""),
        ((b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAA"), b""),
        ((b"Connection: Upgrade", b"Upgrade: websocket, h2c"), b""),
        ((b"Connection: Upgrade", b"Upgrade: a", b"Upgrade: b"), b""),
    ],
)
def test_an_upgrade_is_passed_on_unless_more_requests_could_follow_in_it(lines: tuple[bytes, ...], wanted: bytes):
    head = http1.parse_request(request(*lines))
    assert head.upgrade == wanted
    assert (b"Upgrade:" in http1.render_request(head, b"/", frozenset())) == bool(wanted)


@pytest.mark.parametrize(
    ("head", "method", "body", "length"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", b"GET", http1.LENGTH, 5),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", b"HEAD", http1.NO_BODY, 5),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", b"GET", http1.CHUNKED, 0),
        (b"HTTP/1.1 200 OK", b"GET", http1.UNTIL_CLOSE, 0),
        (b"HTTP/1.1 204 No Content", b"DELETE", http1.NO_BODY, 0),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9", b"GET", http1.NO_BODY, 9),
        (b"HTTP/1.1 100 Continue", b"PUT", http1.NO_BODY, 0),
        (b"HTTP/1.0 200 OK", b"GET", http1.UNTIL_CLOSE, 0),
        (b"HTTP/1.1 200", b"GET", http1.UNTIL_CLOSE, 0),
    ],
)
def test_where_an_answer_ends(head: bytes, method: bytes, body: int, length: int):
    parsed = http1.parse_response(head, method)
    assert (parsed.body, parsed.length) == (body, length)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\nX: a\nb",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 099 Odd",
        b"HTTP/2 200",
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c",
        b"",
    ],
)
def test_an_answer_that_could_be_read_in_two_ways_is_refused(head: bytes):
    with pytest.raises(HttpMessageError):
        http1.parse_response(head, b"GET")


BAD_CHUNKS = [
    b"x\r\n",
    b"\r\n",
    b"-1\r\n",
    b"0x5\r\nhello\r\n",
    b" 5\r\nhello\r\n",
    b"5 \r\nhello\r\n",
    b"5\nhello\r\n",
    b"5\r\nhelloX\r\n",
    b"5\r\nhello\n0\r\n\r\n",
    b"5\r\nhello!\r\n",
    b"5\r\nhelloGET /admin",
    b"5;a\rb\r\nhello\r\n",
    b"5;a\0\r\nhello\r\n",
    b"f" * 16 + b"\r\n",
    b"5;" + b"a" * 300,
    b"0\r\nContent-Length: 5\r\n\r\n",
    b"0\r\nHost: evil\r\n\r\n",
    b"0\r\nno colon\r\n\r\n",
    b"0\r\nX: a\0\r\n\r\n",
    b"0\r\n" + b"X: y\r\n" * 5000,
]


@pytest.mark.parametrize("data", BAD_CHUNKS, ids=range(len(BAD_CHUNKS)))
@pytest.mark.parametrize("step", [1, 3, 10_000], ids=lambda step: f"by {step}")
def test_bad_chunks_are_found_however_they_are_cut(data: bytes, step: int):
    with pytest.raises(HttpMessageError):
        feed_in_pieces(data, step)


def feed_in_pieces(data: bytes, step: int) -> None:
    body = ChunkedBody()
    for at in range(0, len(data), step):
        assert body.feed(data[at : at + step]) == len(data[at : at + step])
    assert body.done, "not refused, and not at its end"


def test_chunks_are_followed_however_they_are_cut():
    rng = random.Random(7)
    for _ in range(300):
        payload = [rng.randbytes(rng.choice((1, 2, 15, 16, 500))) for _ in range(rng.randrange(5))]
        message = b"".join(b"%x%s\r\n%s\r\n" % (len(p), rng.choice((b"", b";x=1")), p) for p in payload)
        message += b"000\r\n" + rng.choice((b"", b"X-Checksum: 1\r\n", b"A: b\r\nC: d\r\n")) + b"\r\n"
        stream, body, at = message + b"GET / HTTP/1.1\r\n", ChunkedBody(keep=True), 0
        while not body.done:
            piece = stream[at : at + rng.randrange(1, 40)]
            at += body.feed(piece)
        assert stream[:at] == message
        assert b"".join(body.payload or ()) == b"".join(payload)


def test_a_length_takes_its_bytes_and_no_more():
    body = LengthBody(5)
    assert (body.feed(b"abc"), body.done) == (3, False)
    assert (body.feed(b"deNEXT"), body.done) == (2, True)


def test_the_body_follows_from_the_head():
    assert body_of(http1.parse_request(request())) is None
    assert body_of(http1.parse_request(request(b"Content-Length: 0"))) is None
    assert isinstance(body_of(http1.parse_request(request(b"Content-Length: 1"))), LengthBody)
    assert isinstance(body_of(http1.parse_request(request(b"Transfer-Encoding: chunked"))), ChunkedBody)
    assert isinstance(body_of(http1.parse_response(b"HTTP/1.1 200 OK", b"GET")), OpenBody)


def test_random_bytes_are_refused_or_read_and_nothing_else():
    rng = random.Random(11)
    alphabet = [
        b"\r",
        b"\n",
        b"\r\n",
        b":",
        b" ",
        b"\t",
        b"\0",
        b"a",
        b"Host",
        b"GET",
        b"/",
        b"HTTP/1.1",
        b"5",
        b"\xff",
    ]
    for _ in range(5000):
        head = b"".join(rng.choices(alphabet, k=rng.randrange(1, 25)))
        try:
            parsed = http1.parse_request(head)
        except HttpMessageError:
            continue
        assert (
            http1.parse_request(http1.render_request(parsed, parsed.target, frozenset())[:-4]).fields == parsed.fields
        )
