"""Kubeconfig text to entries. Types are checked in the whole file, all faults at once.

What the values *mean* is checked in `resolve`, and only for the entries in use: one
broken entry does not stop work with another cluster (kubectl does the same). Unknown
fields are ignored, null is absent.
"""

from __future__ import annotations

import json
from binascii import Error as Base64Error
from binascii import a2b_base64

from kubeauthn._core.kubeconfig.faults import Fault, raise_faults, with_lines
from kubeauthn._core.kubeconfig.model import (
    EXEC_EXTENSION,
    EXEC_PROXY_EXTENSION,
    EXTERNAL_SIGNER,
    AuthProvider,
    ClusterEntry,
    ContextEntry,
    ExecConfig,
    Impersonation,
    Kubeconfig,
    Origin,
    UserEntry,
)
from kubeauthn._core.kubeconfig.paths import directory_of, resolve_command, resolve_file
from kubeauthn._core.yaml_document import Path, YamlSyntaxError, parse
from kubeauthn._secret import Secret

_IMPLIED_INTERACTIVE_MODE = {
    "client.authentication.k8s.io/v1beta1": "IfAvailable",
    "client.authentication.k8s.io/v1alpha1": "IfAvailable",
}
"""`client.authentication.k8s.io/v1` wants it said."""

_CHECKED_ONLY = "checked only"
"""Stands for an attribute where a field must have the right type but is not kept."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Entry = TypeVar("Entry", ClusterEntry, UserEntry, ContextEntry)
    Read = Callable[["Decoder", Any, Path, str], Any]
    """Takes the decoder, a value, the path of the object it is a field of, and the field's name."""
    Fields = dict[str, tuple[str, Read]]
    """From a field's name in the file to the attribute it becomes, and how it is read."""


def decode(text: str, path: str | None = None) -> Kubeconfig:
    """The entries of one kubeconfig text, or `KubeconfigError` with every fault.

    `path` is the absolute path of the file the text came from: relative paths in it start there.
    """
    kubeconfig, faults = decode_with_faults(text, path)
    raise_faults(faults)
    return kubeconfig


def decode_with_faults(text: str, path: str | None = None) -> tuple[Kubeconfig, list[Fault]]:
    """What can be read, and what is wrong with the rest."""
    try:
        document = parse(text)
    except YamlSyntaxError as error:
        return Kubeconfig(), [Fault(Origin(path, error.line), (), error.message)]
    decoder = Decoder(path)
    for at, message in document.faults:
        decoder.report(at, message)
    kubeconfig = decoder.kubeconfig(document.value)
    if not decoder.faults:
        return kubeconfig, []
    return kubeconfig, sorted(with_lines(decoder.faults, text), key=lambda fault: fault.line or 0)


class Decoder:
    """Reads one document. Faults are gathered; in place of a faulty value stands an empty one."""

    def __init__(self, path: str | None) -> None:
        self.origin = Origin(path)
        self.directory = directory_of(path)
        self.faults: list[Fault] = []

    def report(self, at: Path, message: str) -> None:
        self.faults.append(Fault(self.origin, at, message))

    def wrong_type(self, at: Path, expected: str, value: object) -> None:
        self.report(at, f"expected {expected}, got {_kind_of(value)}")

    def kubeconfig(self, document: object) -> Kubeconfig:
        if document is None:
            return Kubeconfig()
        found = self.record(document, _TOP_FIELDS, ())
        if found.get("kind", "") not in ("", "Config"):
            self.report(("kind",), 'expected "Config"')
        if found.get("api_version", "") not in ("", "v1"):
            self.report(("apiVersion",), 'expected "v1"')
        current = found.get("current_context", "")
        return Kubeconfig(
            clusters=found.get("clusters", {}),
            users=found.get("users", {}),
            contexts=found.get("contexts", {}),
            current_context=current,
            current_context_origin=self.origin if current else Origin(),
        )

    def record(self, value: object, fields: Fields, at: Path) -> dict[str, Any]:
        """The known fields of an object, by attribute name; those that are null are left out."""
        found: dict[str, Any] = {}
        if type(value) is not dict:
            self.wrong_type(at, "an object", value)
            return found
        for key, item in value.items():
            field = fields.get(key)
            if field is not None and item is not None:
                attribute, read = field
                # The usual case without a call: this line runs for every field of the file.
                found[attribute] = item if read is _text and type(item) is str else read(self, item, at, key)
        return found

    def entries(self, value: object, at: Path, section: str, body_key: str, fields: Fields, make: type[Entry]) -> Any:
        """`[{name: N, cluster: {…}}, …]` as a dictionary by name."""
        entries: dict[str, Entry] = {}
        if type(value) is not list:
            self.wrong_type((*at, section), "a list", value)
            return entries
        for index, item in enumerate(value):
            if item is None:
                continue
            here: Path = (*at, section, index)
            if type(item) is not dict:
                self.wrong_type(here, "an object", item)
                continue
            name = item.get("name")
            if type(name) is not str:
                if name is not None:
                    self.wrong_type((*here, "name"), "a string", name)
                name = ""
            elif name in entries:
                self.report((*here, "name"), f"duplicate name {json.dumps(name[:200])} in list")
            body = item.get(body_key)
            found = {} if body is None else self.record(body, fields, (*here, body_key))
            found.pop(_CHECKED_ONLY, None)
            if make is UserEntry:
                _gather_impersonation(found)
            entries[name] = make(**found, origin=self.origin)
        return entries

    def strings(self, value: object, at: Path, key: str) -> tuple[str, ...]:
        if type(value) is not list:
            self.wrong_type((*at, key), "a list of strings", value)
            return ()
        for item in value:
            if type(item) is not str:
                break
        else:
            return tuple(value)
        for index, item in enumerate(value):
            if type(item) is not str and item is not None:
                self.wrong_type((*at, key, index), "a string", item)
        return tuple(item if type(item) is str else "" for item in value)


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _text(decoder: Decoder, value: Any, at: Path, key: str) -> str:
    if type(value) is str:
        return value
    decoder.wrong_type(
        (*at, key), "a string (quote it)" if isinstance(value, bool | int | float) else "a string", value
    )
    return ""


def _flag(decoder: Decoder, value: Any, at: Path, key: str) -> bool:
    if type(value) is bool:
        return value
    decoder.wrong_type((*at, key), "true or false", value)
    return False


def _secret(decoder: Decoder, value: Any, at: Path, key: str) -> Secret:
    return Secret(_text(decoder, value, at, key))


def _file(decoder: Decoder, value: Any, at: Path, key: str) -> str:
    return resolve_file(_text(decoder, value, at, key), decoder.directory)


def _command(decoder: Decoder, value: Any, at: Path, key: str) -> str:
    return resolve_command(_text(decoder, value, at, key), decoder.directory)


def _base64(decoder: Decoder, value: Any, at: Path, key: str) -> bytes:
    text = _text(decoder, value, at, key)
    try:
        # Go's decoder, too, skips line breaks and nothing else.
        return a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except (Base64Error, ValueError):  # ValueError: not ASCII
        decoder.report((*at, key), "is not base64")
        return b""


def _base64_secret(decoder: Decoder, value: Any, at: Path, key: str) -> Secret:
    try:
        return Secret(_base64(decoder, value, at, key).decode())
    except UnicodeDecodeError:
        decoder.report((*at, key), "is base64, but not of text (PEM was expected)")
        return Secret("")


def _strings(decoder: Decoder, value: Any, at: Path, key: str) -> tuple[str, ...]:
    return decoder.strings(value, at, key)


def _string_lists(decoder: Decoder, value: Any, at: Path, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    here = (*at, key)
    if type(value) is not dict:
        decoder.wrong_type(here, "an object of string lists", value)
        return ()
    return tuple((name, () if items is None else decoder.strings(items, here, name)) for name, items in value.items())


def _env(decoder: Decoder, value: Any, at: Path, key: str) -> tuple[tuple[str, str], ...]:
    here = (*at, key)
    if type(value) is not list:
        decoder.wrong_type(here, "a list", value)
        return ()
    variables = []
    for index, item in enumerate(value):
        found = {} if item is None else decoder.record(item, _ENV_FIELDS, (*here, index))
        variables.append((found.get("name", ""), found.get("value", "")))
    return tuple(variables)


def _exec(decoder: Decoder, value: Any, at: Path, key: str) -> ExecConfig:
    found = decoder.record(value, _EXEC_FIELDS, (*at, key))
    found.setdefault("command", "")
    version = found.setdefault("api_version", "")
    if not found.get("interactive_mode"):
        found["interactive_mode"] = _IMPLIED_INTERACTIVE_MODE.get(version, "")
    return ExecConfig(**found)


def _auth_provider(decoder: Decoder, value: Any, at: Path, key: str) -> AuthProvider:
    found = decoder.record(value, _AUTH_PROVIDER_FIELDS, (*at, key))
    name, config = found.get("name", ""), found.get("config", ())
    if name == EXTERNAL_SIGNER:  # names an executable, as `exec` does
        config = tuple(
            (field, resolve_command(text, decoder.directory) if field == "pathExec" else text) for field, text in config
        )
    return AuthProvider(name, config)


def _string_map(decoder: Decoder, value: Any, at: Path, key: str) -> tuple[tuple[str, str], ...]:
    here = (*at, key)
    if type(value) is not dict:
        decoder.wrong_type(here, "an object of strings", value)
        return ()
    return tuple((name, "" if item is None else _text(decoder, item, here, name)) for name, item in value.items())


def _extensions(decoder: Decoder, value: Any, at: Path, key: str) -> str:
    """The reserved one of a cluster's `[{name: N, extension: …}, …]`, as compact JSON in its own order."""
    return _reserved_extension(decoder, value, at, key, EXEC_EXTENSION)


def _exec_proxy(decoder: Decoder, value: Any, at: Path, key: str) -> bool:
    """Whether the user's reserved extension switches the exec proxy on."""
    text = _reserved_extension(decoder, value, at, key, EXEC_PROXY_EXTENSION)
    if not text:
        return False
    extension = json.loads(text)
    enabled = extension.get("enabled") if isinstance(extension, dict) else None
    if not isinstance(enabled, bool):
        decoder.report((*at, key), f"{EXEC_PROXY_EXTENSION} is expected to be an object with enabled: true or false")
    return enabled is True


def _reserved_extension(decoder: Decoder, value: Any, at: Path, key: str, wanted: str) -> str:
    here = (*at, key)
    if type(value) is not list:
        decoder.wrong_type(here, "a list", value)
        return ""
    seen: set[str] = set()
    reserved = ""
    for index, item in enumerate(value):
        if item is None:
            continue
        name = decoder.record(item, _EXTENSION_FIELDS, (*here, index)).get("name", "")
        if name in seen:
            decoder.report((*here, index, "name"), f"duplicate name {json.dumps(name[:200])} in list")
        seen.add(name)
        extension = item.get("extension") if type(item) is dict else None
        if name != wanted or extension is None:
            continue
        try:
            reserved = json.dumps(extension, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except ValueError:
            decoder.report((*here, index, "extension"), "holds a number that JSON cannot express")
    return reserved


def _object(decoder: Decoder, value: Any, at: Path, key: str) -> None:
    decoder.record(value, {}, (*at, key))


def _clusters(decoder: Decoder, value: Any, at: Path, key: str) -> dict[str, ClusterEntry]:
    entries: dict[str, ClusterEntry] = decoder.entries(value, at, key, "cluster", _CLUSTER_FIELDS, ClusterEntry)
    return entries


def _users(decoder: Decoder, value: Any, at: Path, key: str) -> dict[str, UserEntry]:
    entries: dict[str, UserEntry] = decoder.entries(value, at, key, "user", _USER_FIELDS, UserEntry)
    return entries


def _contexts(decoder: Decoder, value: Any, at: Path, key: str) -> dict[str, ContextEntry]:
    entries: dict[str, ContextEntry] = decoder.entries(value, at, key, "context", _CONTEXT_FIELDS, ContextEntry)
    return entries


def _gather_impersonation(found: dict[str, Any]) -> None:
    parts = {name: found.pop("as_" + name) for name in ("user", "uid", "groups", "extra") if "as_" + name in found}
    if parts:
        found["impersonation"] = Impersonation(**parts)


_TOP_FIELDS: Fields = {
    "kind": ("kind", _text),
    "apiVersion": ("api_version", _text),
    "preferences": (_CHECKED_ONLY, _object),
    "clusters": ("clusters", _clusters),
    "users": ("users", _users),
    "contexts": ("contexts", _contexts),
    "current-context": ("current_context", _text),
    "extensions": (_CHECKED_ONLY, _extensions),
}
_CLUSTER_FIELDS: Fields = {
    "server": ("server", _text),
    "tls-server-name": ("tls_server_name", _text),
    "insecure-skip-tls-verify": ("insecure_skip_tls_verify", _flag),
    "certificate-authority": ("certificate_authority", _file),
    "certificate-authority-data": ("certificate_authority_data", _base64),
    "proxy-url": ("proxy_url", _text),
    "disable-compression": ("disable_compression", _flag),
    "extensions": ("exec_extension", _extensions),
}
_USER_FIELDS: Fields = {
    "client-certificate": ("client_certificate", _file),
    "client-certificate-data": ("client_certificate_data", _base64),
    "client-key": ("client_key", _file),
    "client-key-data": ("client_key_data", _base64_secret),
    "token": ("token", _secret),
    "tokenFile": ("token_file", _file),
    "username": ("username", _text),
    "password": ("password", _secret),
    "as": ("as_user", _text),
    "as-uid": ("as_uid", _text),
    "as-groups": ("as_groups", _strings),
    "as-user-extra": ("as_extra", _string_lists),
    "auth-provider": ("auth_provider", _auth_provider),
    "exec": ("exec", _exec),
    "extensions": ("exec_proxy", _exec_proxy),
}
_CONTEXT_FIELDS: Fields = {
    "cluster": ("cluster", _text),
    "user": ("user", _text),
    "namespace": ("namespace", _text),
    "extensions": (_CHECKED_ONLY, _extensions),
}
_EXEC_FIELDS: Fields = {
    "command": ("command", _command),
    "apiVersion": ("api_version", _text),
    "args": ("args", _strings),
    "env": ("env", _env),
    "installHint": ("install_hint", _text),
    "provideClusterInfo": ("provide_cluster_info", _flag),
    "interactiveMode": ("interactive_mode", _text),
}
_ENV_FIELDS: Fields = {"name": ("name", _text), "value": ("value", _text)}
_AUTH_PROVIDER_FIELDS: Fields = {"name": ("name", _text), "config": ("config", _string_map)}
_EXTENSION_FIELDS: Fields = {"name": ("name", _text)}

ENTRY_FIELDS = {
    "clusters": ("cluster", tuple(_CLUSTER_FIELDS)),
    "users": ("user", tuple(_USER_FIELDS)),
    "contexts": ("context", tuple(_CONTEXT_FIELDS)),
}
"""From a section of the file to the key that holds an entry's fields, and their names."""
EXEC_FIELD_NAMES = tuple(_EXEC_FIELDS)
