"""What a text that is no token, or not quite, probably is: people copy more than the token, or another one."""

from __future__ import annotations

from kubeauthn._core.jose.limits import TOKEN_CHARACTERS

_BEGINNING = 64
_BY_BEGINNING = {
    "": "there is no token: the text is empty",
    "{": "it is a JSON document: the token is in a field of it, such as id_token or status.token",
    '"': "there are quotation marks around the token: jq -r leaves them out",
    "'": "there are quotation marks around the token",
    "\ufeff": "a byte order mark stands before the token",
    "\ufffd": "it is no text in UTF-8; UTF-16 perhaps, which > of PowerShell writes",
}
_OPAQUE = "a token of this form is opaque: only its issuer can read it; is there an id_token beside it?"
_HEADER = "eyJ"
"""How a header begins: base64url of `{"`."""
_BEFORE_A_VALUE = "=:,\"'"
_BY_DOTS = {
    0: _OPAQUE,
    1: "the signature is missing: a token has three parts, with two dots between them",
    4: "a token of five parts is encrypted (JWE): only the one whom it was made for can read it",
}


def token_hint(text: str) -> str:
    """What may be added to what is said of a token's text, or "". Looks at a huge one without a copy of it."""
    begin = text[:_BEGINNING].lstrip(" \t\r\n")[:1]
    if begin in _BY_BEGINNING:
        return _BY_BEGINNING[begin]
    if len(text) > TOKEN_CHARACTERS:
        return ""
    if any(space in text for space in " \t\r\n"):
        return "there is white space in it: give the token alone, on one line"
    place = text.find(_HEADER, 0, _BEGINNING)
    if place > 0 and text[place - 1] in _BEFORE_A_VALUE:
        return f"something stands before the token: it begins with {_HEADER}"
    dots = text.count(".")
    return _OPAQUE if dots == 1 and place < 0 else _BY_DOTS.get(dots, "")
