"""What the carrier answers itself.

As text: kubectl shows a text whatever it had asked for, and a Status only where it expected an object.
"""

from __future__ import annotations

_PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}


def refusal(status: int, message: str, *, close: bool, head_only: bool = False) -> bytes:
    """`head_only` for HEAD: a client would take the body for the next answer."""
    body = f"{message}\n".encode()
    lines = [
        f"HTTP/1.1 {status} {_PHRASES.get(status, 'Error')}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        *(["Connection: close"] if close else []),
    ]
    return "\r\n".join((*lines, "", "")).encode() + (b"" if head_only else body)
