"""TokenReview as bytes: what a webhook is asked, and what it answers.

`authentication.k8s.io` v1 and v1beta1 are the same fields; the answer is in the version of the question. Unknown
fields are passed over, as Kubernetes passes them over. Two rules are security:

- `spec.audiences` is never echoed: whoever asks would make any token good for any audience
- a reason is told only where it was asked for, and then only its public part
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as _text
from typing import TYPE_CHECKING, Any, NamedTuple

from kubeauthn.errors import NotAReview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubeauthn._core.authentication.verdict import UserInfo

KIND = "TokenReview"
VERSIONS = ("authentication.k8s.io/v1", "authentication.k8s.io/v1beta1")
_AUDIENCES = 1000
_WHITE = " \t\r\n"
_read = json.JSONDecoder().raw_decode
_new = tuple.__new__  # half of what calling the class takes
_write = json.JSONEncoder(separators=(",", ":")).encode


class Review(NamedTuple):
    """A question. The token is whatever was sent: any text at all."""

    version: str
    token: str
    audiences: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Review({self.version!r}, {len(self.token)} characters, {self.audiences!r})"


def read_review(body: bytes) -> Review:
    """The question in `body`. Raises NotAReview."""
    try:
        text = body.decode().strip(_WHITE)
        document: Any
        document, end = _read(text)
        if end != len(text):
            raise NotAReview("the body is not JSON")
    except (ValueError, RecursionError):
        raise NotAReview("the body is not JSON") from None
    if type(document) is not dict:
        raise NotAReview(f"expected a {KIND}, not {_named(document)}")
    version = document.get("apiVersion")
    if document.get("kind") != KIND or version not in VERSIONS:
        raise NotAReview(f"expected kind {KIND} of {VERSIONS[0]} or {VERSIONS[1]}")
    spec: Any = document.get("spec")
    token = spec.get("token") if type(spec) is dict else None
    if type(token) is not str or not token:
        # As kube-apiserver says it.
        raise NotAReview("token is required for TokenReview in authentication")
    audiences = spec.get("audiences")
    if audiences is None:
        return _new(Review, (version, token, ()))
    if type(audiences) is not list or not all(type(entry) is str for entry in audiences):
        raise NotAReview("spec.audiences: expected a list of strings")
    if len(audiences) > _AUDIENCES:
        raise NotAReview(f"spec.audiences: expected at most {_AUDIENCES}, not {len(audiences)}")
    return Review(version, token, tuple(audiences))


def common_audiences(api: Sequence[str], asked: Sequence[str]) -> tuple[str, ...] | None:
    """What `status.audiences` holds: those of the API's own that were asked for, all of them if none was named.

    None: nothing in common, and so the token is not authenticated. Without audiences of the API: (), left out.
    """
    if not api:
        return ()
    if not asked:
        return tuple(api)
    return tuple(audience for audience in api if audience in asked) or None


def authenticated(version: str, user: UserInfo, audiences: Sequence[str] = ()) -> bytes:
    # Put together by hand: the encoder takes several times as long for a document as for the texts in it.
    uid = f',"uid":{_text(user.uid)}' if user.uid else ""
    groups = f',"groups":{_write(user.groups)}' if user.groups else ""
    extra = f',"extra":{_write(dict(user.extra))}' if user.extra else ""
    shared = f',"audiences":{_write(audiences)}' if audiences else ""
    described = f'{{"username":{_text(user.username)}{uid}{groups}{extra}}}'
    return _answer(version, f'{{"authenticated":true,"user":{described}{shared}}}')


def refused(version: str, error: str = "") -> bytes:
    told = f',"error":{_write(error)}' if error else ""
    return _answer(version, f'{{"authenticated":false{told}}}')


def _answer(version: str, status: str) -> bytes:
    """`version` is one of ours, and needs no escapes."""
    return f'{{"kind":"{KIND}","apiVersion":"{version}","metadata":{{}},"spec":{{}},"status":{status}}}'.encode()


def _named(value: object) -> str:
    kinds = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
