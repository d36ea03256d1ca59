"""What a text of a configuration says that no token will: judged by the text alone, no expression among them."""

from __future__ import annotations

from kubeauthn._core.authentication.provider_document import WELL_KNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import Issuer

_PLACEHOLDERS = (("${", "}"), ("{{", "}}"), ("$(", ")"), ("<", ">"))
"""What envsubst, Helm, kustomize and the author of an example leave behind. None of it is in a URL or an id."""
_QUOTES = "\"'`“”„‟«»‘’‚‹›"
_ENTRA = "https://login.microsoftonline.com/"
_ANY_TENANT = ("common", "organizations")


def placeholder(text: str) -> str:
    """The part of a text that somebody was to fill in, or ""."""
    for begin, end in _PLACEHOLDERS:
        start = text.find(begin)
        stop = text.find(end, start + len(begin)) if start >= 0 else -1
        if stop > start + len(begin):
            return text[start : stop + len(end)]
    return ""


def has_space_around(text: str) -> bool:
    return text != text.strip()


def unseen_character(text: str) -> str:
    """The first character that nobody sees, as it comes along when a text is copied from a page: `U+200B`, or ""."""
    return next((f"U+{ord(character):04X}" for character in text.strip() if not character.isprintable()), "")


def beyond_ascii(text: str) -> str:
    """The first letter that may only look like one of ASCII's: `U+0430`, or ""."""
    return next((f"U+{ord(character):04X}" for character in text if not character.isascii()), "")


def has_quotes_around(text: str) -> bool:
    """Written by a word processor, or quoted twice: YAML's own marks are gone when a text is read."""
    return len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES


def wrong_issuer(issuer: Issuer) -> tuple[str, str]:
    """Why no token has this issuer, and what to write instead; two empty texts where nothing is known of it."""
    url = issuer.url
    if url.rstrip("/").endswith(WELL_KNOWN):
        text = "is the address of a document, and no token has it as its iss"
        return text, f"url: {url.rstrip('/').removesuffix(WELL_KNOWN)}, if that is what the document calls its issuer"
    if url.startswith(_ENTRA) and url.removeprefix(_ENTRA).partition("/")[0] in _ANY_TENANT:
        return (
            "is what people log in at: a token's iss has the id of their tenant there",
            f"url: {_ENTRA}TENANT-ID/v2.0",
        )
    return "", ""


def leads_into_an_object(claim: str) -> bool:
    """Whether a claim's name looks like a path (`realm_access.roles`). Names that are addresses have dots too."""
    return all(part.isidentifier() for part in claim.split(".")) and "." in claim
