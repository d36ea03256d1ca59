"""Arguments and addresses shown without what looks like a secret in them. Rather one too many than one too few."""

from __future__ import annotations

from collections.abc import Sequence

HIDDEN = "<hidden>"

_SECRET_WORDS = {
    *("token", "secret", "password", "passwd", "pwd", "passphrase", "pass", "pin", "key", "apikey", "pat"),
    *("credential", "credentials", "cookie", "auth", "jwt", "bearer", "assertion"),
}
_HARMLESS_ENDINGS = {
    *("dir", "directory", "file", "path", "url", "uri", "id", "name", "type", "kind", "storage", "mode", "ttl"),
    *("lifetime", "duration", "audience", "format", "cache", "command", "provider", "issuer", "alias", "vault"),
    *("label", "slot", "method", "version", "endpoint"),
}
"""`--token-cache-dir` names a place, not a token."""

_SECRET_PREFIXES = ("eyJ", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk-", "k8s-aws-v1.")
_OPAQUE_LENGTH = 32


def redacted_arguments(arguments: Sequence[str]) -> list[str]:
    """`--token abc`, `--token=abc`, `password=abc`, and values that look like a token wherever they stand."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        is_option = argument.startswith("-") and len(argument) > 1
        if hide_next and not is_option:
            shown.append(HIDDEN)
            hide_next = False
            continue
        name, equals, value = argument.partition("=")
        if equals and "://" not in name:
            shown.append(f"{name}={HIDDEN if is_secret_name(name) and value else redacted_value(value)}")
        else:
            shown.append(redacted_value(argument) if not is_option else argument)
        hide_next = is_option and not equals and is_secret_name(argument)
    return shown


def is_secret_name(name: str) -> bool:
    """Whether an option or variable of this name holds a secret."""
    words = [word for word in name.lower().replace("-", " ").replace("_", " ").replace(".", " ").split() if word]
    return bool(words) and words[-1] not in _HARMLESS_ENDINGS and not _SECRET_WORDS.isdisjoint(words)


def redacted_value(value: str) -> str:
    if any(character.isspace() for character in value):
        return HIDDEN  # a header, or a script: whatever it says, it may say a secret
    if "://" in value:
        return redacted_url(value)
    return HIDDEN if value.startswith(_SECRET_PREFIXES) or _is_opaque(value) else value


def redacted_url(url: str) -> str:
    """Without the user and password, and without what is asked for."""
    scheme, separator, rest = url.partition("://")
    rest, question, _ = rest.partition("?")
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        authority = f"{HIDDEN}@{authority.rpartition('@')[2]}"
    return f"{scheme}{separator}{authority}{slash}{path}{question}{HIDDEN if question else ''}"


def _is_opaque(value: str) -> bool:
    """Long, of the characters of base64 or hexadecimal, and with digits among the letters: no word of any language."""
    if len(value) < _OPAQUE_LENGTH or value.startswith(("/", ".", "-")):
        return False
    if not all(character.isascii() and (character.isalnum() or character in "+/=_-.") for character in value):
        return False
    digits = sum(character.isdigit() for character in value)
    separators = sum(character in "-_./" for character in value)
    return digits >= 4 and separators * 8 <= len(value)
