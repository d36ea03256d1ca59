"""Judges one recorded configuration, and the token that was tried on it.

What can differ: `decode` (the text of a decoding error), `config faults` (their texts, in order), `verdict`
(authenticated, refused or not mine), `user`, and `text` (why a token was refused).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from kubeauthn._core.authentication.compiled import compile_configuration
from kubeauthn._core.authentication.faults import DECODE, STRICT, SYNTAX
from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._core.authentication.release import NEWEST
from kubeauthn._io.async_http import Document
from kubeauthn._secret import Secret
from kubeauthn.errors import AuthenticationConfigError, EnvironmentFailure, KeySetError, NotMine, TokenError
from kubeauthn.server import AuthenticationConfiguration, Authenticator
from kubeauthn.server.distributed import ClaimSourceResolver

__all__ = ["CannedDocuments", "Judge"]

Mismatch = tuple[str, str, str]


class CannedDocuments:
    """Answers requests from a table, url → `{"status", "contentType", "body"}`, and nothing else."""

    def __init__(self, replies: dict[str, dict[str, Any]]) -> None:
        self._replies = replies

    async def get(
        self, url: str, *, seconds: float, most_bytes: int = 1 << 20, bearer: Secret | None = None
    ) -> Document:
        reply = self._replies.get(url)
        if reply is None:
            raise EnvironmentFailure(f"nothing is recorded for {url}")
        body = str(reply.get("body", "")).encode()
        return Document(int(reply.get("status") or 200), str(reply.get("contentType") or "application/json"), body)


class _Offline(Authenticator):
    """An authenticator whose claim sources are answered from a table."""

    def __init__(
        self, config: AuthenticationConfiguration, keys: dict[str, Any], documents: CannedDocuments, version: str
    ) -> None:
        super().__init__(config, keys=keys)
        self._documents = documents
        if version != NEWEST:
            self._configuration = compile_configuration(config, version)

    def _resolver(self, issuer: str) -> ClaimSourceResolver:
        config = self._configuration.by_issuer[issuer].config.issuer
        return ClaimSourceResolver(config, self.key_sources[issuer], documents=self._documents)


class Judge:
    """Knows the key set that a case means by `"default"`."""

    def __init__(self, default_keys: dict[str, Any]) -> None:
        self._default_keys = default_keys

    def __call__(self, case: dict[str, Any]) -> list[Mismatch]:
        """What differs; the least of it, where the real answer itself varied."""
        found = self.answer(case)
        if "ours" in case:
            return _compare_ours(case["ours"], found)
        expect = case["expect"]
        variants = case.get("variants") or expect.get("variants") or []
        expected = [expect, *(json.loads(text) if isinstance(text, str) else text for text in variants)]
        return min((_compare(one, found) for one in expected), key=len)

    def answer(self, case: dict[str, Any]) -> dict[str, Any]:
        """What we say to a case, in the form of the recorded answer; `notMine` where no issuer matches.

        `kubernetes` in the case names a version.
        """
        version = case.get("kubernetes") or NEWEST
        try:
            config = load_configuration(case["config"], case.get("disallowedIssuers") or (), version)
        except AuthenticationConfigError as error:
            if error.errors[0].kind in (SYNTAX, DECODE, STRICT):
                return {"strictDecodeError": str(error), "authenticated": False}
            return {"configErrors": [fault.text for fault in error.errors], "authenticated": False}
        if case.get("token") is None:
            return {"authenticated": False, "notMine": True}
        replies = case.get("http")
        keys = self._keys(case, config)
        try:
            authenticator = _Offline(config, keys, CannedDocuments(replies or {}), version)
            if replies:
                user = asyncio.run(authenticator.authenticate_async(case["token"], now=case.get("now")))
            else:
                user = authenticator.authenticate(case["token"], now=case.get("now"))
        except NotMine:
            return {"authenticated": False, "notMine": True}
        except (TokenError, KeySetError) as error:
            return {"authenticated": False, "error": str(error)}
        return {"authenticated": True, "user": user.as_dict()}

    def _keys(self, case: dict[str, Any], config: AuthenticationConfiguration) -> dict[str, Any]:
        by_issuer = case.get("jwksByIssuer") or {}
        given = case.get("jwks")
        everywhere = self._default_keys if given is None or given == "default" else given
        return {entry.issuer.url: by_issuer.get(entry.issuer.url, everywhere) for entry in config.jwt}


def _compare(expected: dict[str, Any], found: dict[str, Any]) -> list[Mismatch]:
    decode_error = _without_scheme(expected.get("strictDecodeError"))
    if decode_error != found.get("strictDecodeError"):
        return [("decode", _short(decode_error or expected), _short(found.get("strictDecodeError") or found))]
    if (expected.get("configErrors") or []) != (found.get("configErrors") or []):
        return [("config faults", _short(expected.get("configErrors")), _short(found.get("configErrors")))]
    if decode_error or expected.get("configErrors"):
        return []
    not_mine = not expected["authenticated"] and not expected.get("error")
    if expected["authenticated"] != found["authenticated"] or not_mine != found.get("notMine", False):
        return [("verdict", _short(expected), _short(found))]
    if expected["authenticated"]:
        return _compare_user(expected["user"], found["user"])
    if expected.get("error") and expected["error"] != found["error"]:
        return [("text", expected["error"], found["error"])]
    return []


def _compare_ours(ours: dict[str, Any], found: dict[str, Any]) -> list[Mismatch]:
    """A difference on purpose: what is expected is said, but no text."""
    if ours.get("configError"):
        refused = "strictDecodeError" in found or "configErrors" in found
        return [] if refused else [("config faults", _short(ours), _short(found))]
    if "strictDecodeError" in found or "configErrors" in found:
        return [("config faults", _short(ours), _short(found))]
    if ours["authenticated"] is None:
        return []
    if ours["authenticated"] != found["authenticated"]:
        return [("verdict", _short(ours), _short(found))]
    return _compare_user(ours["user"], found["user"]) if ours.get("user") else []


def _compare_user(expected: dict[str, Any], found: dict[str, Any]) -> list[Mismatch]:
    def plain(user: dict[str, Any]) -> dict[str, Any]:
        extra = {key: list(values) for key, values in (user.get("extra") or {}).items()}
        return {
            "username": user["username"],
            "uid": user.get("uid") or "",
            "groups": list(user.get("groups") or []),
            "extra": dict(sorted(extra.items())),
        }

    return [] if plain(expected) == plain(found) else [("user", _short(plain(expected)), _short(plain(found)))]


def _without_scheme(text: str | None) -> str | None:
    """Without the place in Go's source where the scheme was made: it is the recording program's own."""
    return text.partition(' in scheme "')[0] if text else text


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:1500]
