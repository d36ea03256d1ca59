"""What a plugin printed: the document in it, and the rest shown in a way that gives no secret away."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kubeauthn._core import execwire
from kubeauthn.errors import PluginReplyError

LONGEST_WORD = 24
"""A longer one may be a token or a line of a key."""
LONGEST_QUOTE = 120
_TRIES = 50


@dataclass(frozen=True, slots=True)
class Output:
    """Standard output, taken apart. `document` is all of it where no document could be found in it."""

    document: bytes = field(repr=False)
    before: str = field(default="", repr=False)
    after: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    oddity: str = ""
    """What kubectl takes and other clients may not."""

    @property
    def only_the_document(self) -> bool:
        return not self.before and not self.after


def take_apart(printed: bytes, kinds: tuple[str, ...] = (execwire.KIND,)) -> Output:
    """Find the document of one of these kinds in what was printed, though other text may stand around it."""
    try:
        document = execwire.reply_document(printed)
    except PluginReplyError:
        pass
    else:
        return Output(printed, secrets=_secrets(document), oddity=_oddity(printed, document))
    text = printed.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(_TRIES):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            document, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and document.get("kind") in kinds:
            return Output(
                text[start:end].encode(), text[:start].strip(), text[end:].strip(), secrets=_secrets(document)
            )
    return Output(printed)


def quoted(text: str, secrets: tuple[str, ...], *, of_failure: bool = False) -> str:
    """One line of it, short, in quotes, and without anything that is or may be a secret.

    The first that says something; of a plugin that failed the last that says `error:`, else the last one.
    """
    if "{" in text or "-----BEGIN" in text:
        return f"{len(text)} characters that are not shown: they may hold a secret"
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    line = lines[0]
    if of_failure:
        line = next((each for each in reversed(lines) if "error:" in each.lower()), lines[-1])
    for secret in secrets:
        line = line.replace(secret, "…")
    words = (word if len(word) <= LONGEST_WORD else f"<{len(word)} characters>" for word in line.split())
    short = " ".join(words)
    short = "".join(letter if letter.isprintable() else "?" for letter in short)
    return f'"{short[:LONGEST_QUOTE]}…"' if len(short) > LONGEST_QUOTE else f'"{short}"'


def _oddity(printed: bytes, document: dict[str, Any]) -> str:
    if not printed.lstrip().startswith(b"{"):
        return "it is YAML, not JSON"
    return "" if document.get("kind") else "it does not say its kind"


def _secrets(document: Any) -> tuple[str, ...]:
    status = document.get("status") if isinstance(document, dict) else None
    if not isinstance(status, dict):
        return ()
    values = (status.get(name) for name in ("token", "clientKeyData"))
    return tuple(value for value in values if isinstance(value, str) and value)
