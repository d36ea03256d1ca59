"""The pages that the browser shows: no script, nothing from elsewhere, nothing of the login in them."""

from __future__ import annotations

_HEADERS = (
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy: no-referrer",
    "X-Content-Type-Options: nosniff",
    "Cache-Control: no-store",
    "Connection: close",
)
_PHRASES = {200: "OK", 302: "Found", 400: "Bad Request", 404: "Not Found"}
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 18vh auto 0; padding: 0 1rem }}
:root {{ color-scheme: light dark }}
</style>
<main>
<h1>{title}</h1>
<p>{text}</p>
</main>
"""


def success() -> bytes:
    return _page(200, "You are logged in", "The command in your terminal goes on. You can close this page.")


def failure() -> bytes:
    return _page(400, "The login did not succeed", "Your terminal says why. You can close this page.")


def refusal(status: int = 400) -> bytes:
    return _page(status, "Not the login that is waited for", "Open the address that your terminal shows.")


def moved(address: str) -> bytes:
    """To the issuer. The address is one that was checked: printable, and https or on this machine."""
    return _message(302, b"", f"Location: {address}")


def _page(status: int, title: str, text: str) -> bytes:
    return _message(status, _PAGE.format(title=title, text=text).encode(), "Content-Type: text/html; charset=utf-8")


def _message(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} {_PHRASES[status]}", *headers, *_HEADERS, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("ascii") + body
