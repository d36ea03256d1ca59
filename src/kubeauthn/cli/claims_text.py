"""What is wrong with a text that was to be the claims of a token, and what it probably is."""

from __future__ import annotations

import json

_TOKEN = b"eyJ"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WITHOUT_MARK = "save the file as UTF-8 without it"
NOT_UTF_8 = "UTF-16 perhaps, which > of PowerShell writes: save it as UTF-8"
EXAMPLE = '{"sub": "jane"}'


def claims_fault(payload: bytes) -> tuple[str, str]:
    """Of a text that is refused as claims: what is wrong with it, and a hint or "". Quotes nothing of it."""
    text = payload.strip()
    if not text:
        return "the claims are empty", f"they are a JSON object such as {EXAMPLE}"
    if text.startswith(_TOKEN) and text.count(b".") > 1:
        return "the claims are no JSON", "it looks like a token, which is given as one: --token-file FILE"
    if text.startswith(_BYTE_ORDER_MARK):
        return "the claims are no JSON: a byte order mark stands before them", _WITHOUT_MARK
    try:
        value = json.loads(payload.decode())  # bytes would be taken for UTF-16 too
    except UnicodeDecodeError:
        return "the claims are not UTF-8 text", NOT_UTF_8
    except json.JSONDecodeError as error:
        return f"the claims are no JSON: {_place(error)}", "" if text[
            :1
        ] in b"{[" else f"they are an object such as {EXAMPLE}"
    except (ValueError, RecursionError):
        return "the claims are nested too deeply, or have a number that is too long", ""
    if isinstance(value, dict):
        return "the claims are no JSON object that can be read", "is NaN or Infinity in it, or very deep nesting?"
    return "the claims have to be a JSON object", f"such as {EXAMPLE}"


def json_fault(text: str) -> str:
    """What a text that is no JSON probably is, or where it stops being that, or ""."""
    if text.startswith("\ufeff"):
        return f"a byte order mark stands before it: {_WITHOUT_MARK}"
    if text.startswith(_TOKEN.decode()) and text.count(".") > 1:
        return "it looks like a token: kubeauthn explain takes one"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _place(error)
    except (ValueError, RecursionError):
        pass
    return ""


def _place(error: json.JSONDecodeError) -> str:
    return f"{error.msg[:1].lower()}{error.msg[1:]}, line {error.lineno} column {error.colno}"
