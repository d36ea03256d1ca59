"""Which signer a `kubeauthn signer` command is about: a kubeconfig's user entry, or options."""

from __future__ import annotations

import os

from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from kubeauthn._core.kubeconfig.model import Kubeconfig, User, UserEntry
    from kubeauthn.plugin.signer import Configuration

KINDS = ("pkcs11", "tpm2", "file", "kms")
COMMAND = "kubeauthn-signer-"


def add_signer_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("which signer")
    group.add_argument("--signer-user", metavar="NAME", help="the kubeconfig's user entry that names the signer")
    group.add_argument("--signer", choices=KINDS, help="a signer that no entry names yet, with --set")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one key of its configuration, such as tokenLabel=desk; may repeat",
    )


def chosen(arguments: Namespace, kubeconfig: str | None) -> tuple[str, Configuration] | None:
    """The kind and the configuration; None where none was named."""
    from kubeauthn.plugin.signer import Configuration

    if arguments.signer_user and arguments.signer:
        raise UsageError("--signer-user and --signer exclude each other")
    if arguments.signer:
        return arguments.signer, Configuration(_pairs(arguments.set))
    if not arguments.signer_user:
        if arguments.set:
            raise UsageError("--set needs --signer")
        return None
    from kubeauthn.client import kubeconfig as files

    entries = signer_entries(files.load(kubeconfig))
    if arguments.signer_user not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise UsageError(f"no user entry of that name uses one of our signers; those that do: {known}")
    return entries[arguments.signer_user]


def signer_entries(config: Kubeconfig) -> dict[str, tuple[str, Configuration]]:
    """User entries whose external signer is one that kubeauthn ships."""
    from kubeauthn.plugin.signer import Configuration

    found: dict[str, tuple[str, Configuration]] = {}
    for name, entry in config.users.items():
        kind = kind_of(entry)
        if kind and entry.auth_provider is not None:
            found[name] = (kind, Configuration(entry.auth_provider.config))
    return found


def kind_of(user: User | UserEntry) -> str:
    """Which of our signers the entry names; empty where it names none."""
    from kubeauthn._core.kubeconfig.model import EXTERNAL_SIGNER
    from kubeauthn._core.signerwire import PATH_KEY

    provider = user.auth_provider
    if provider is None or provider.name != EXTERNAL_SIGNER:
        return ""
    kind = os.path.basename(dict(provider.config).get(PATH_KEY, "")).removeprefix(COMMAND)
    return kind if kind in KINDS else ""


def open_signer(kind: str, configuration: Configuration, pins: Callable[[str], Any] | None = None) -> Any:
    """The signer itself, in this process: these commands are the person's own."""
    from importlib import import_module

    classes = {"pkcs11": "Pkcs11Signer", "tpm2": "Tpm2Signer", "file": "FileSigner", "kms": "KmsSigner"}
    made = getattr(import_module(f"kubeauthn.plugins.signer_{kind}"), classes[kind])
    return made(configuration) if kind == "kms" or pins is None else made(configuration, pins)


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError("--set takes KEY=VALUE")
        if key == "pin" or (key == "uri" and "pin-value=" in value):
            raise UsageError("a PIN on the command line can be seen by others: use pinSource, or the prompt")
        pairs[key] = value
    return pairs
