"""What a bridge is for, and where it keeps that: one directory for each pair of cluster and user."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubeauthn._core.record import field, record
from kubeauthn._io.files import read_bounded, write_atomically
from kubeauthn._io.kubeconfig import candidate_paths, home_directory
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure

FILE_BYTES = 1 << 20
IDLE_SECONDS = 300.0
LOG = "log"
LOCK = "lock"
DEFINING = "defining"
_ANSWER_SECONDS = 1.0
"""From a bridge's first listening to its first answer, at most."""


@record(frozen=True, slots=True)
class Definition:
    """`options` are those of `open_access`, without secrets. The key is the bridge's own, for the loopback alone."""

    name: str
    """The directory's name, made from what the bridge is for."""
    context: str
    options: dict[str, Any]
    kubeconfig: str
    """The value of KUBECONFIG that it reads."""
    namespace: str
    server: str
    port: int
    certificate: str
    key: Secret = field(repr=False)
    idle_seconds: float = IDLE_SECONDS
    apart: bool = False
    """For one environment alone, beside the one that all share. Nothing is kept of it once nobody uses it."""


def state_directory() -> str:
    """Where all bridges of this user are; made if it is not there."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        home = home_directory(os.environ)
        if not os.path.isabs(home):
            raise EnvironmentFailure(
                "there is no home directory to keep bridges in", hint="set HOME or XDG_STATE_HOME to an absolute path"
            )
        base = os.path.join(home, ".local", "state")
    path = os.path.join(base, "kubeauthn", "bridge")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailure(
            f"{error.filename}: {(error.strerror or 'cannot be made').lower()}",
            hint="bridges are kept there; XDG_STATE_HOME names another place",
        ) from None
    check_private(path)
    return path


def check_private(path: str) -> None:
    """Refuse a directory that is another's, or that others may write to."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise EnvironmentFailure(f"{path}: is not a directory of this user")
    if status.st_mode & 0o022:
        raise EnvironmentFailure(f"{path}: others may write to it", hint=f"chmod 700 {path}")


def directory_of(name: str) -> str:
    if not name or not name.isalnum():
        raise EnvironmentFailure("there is no such bridge", hint="kubeauthn bridge list shows those that are")
    return os.path.join(state_directory(), name)


def save(definition: Definition) -> None:
    path = directory_of(definition.name)
    os.makedirs(path, mode=0o700, exist_ok=True)
    check_private(path)
    fields = {attribute: getattr(definition, attribute) for attribute in definition.__match_args__}
    fields["key"] = definition.key.reveal()
    write_atomically(os.path.join(path, "definition.json"), json.dumps(fields).encode())


def load(name: str) -> Definition:
    path = directory_of(name)
    try:
        check_private(path)
    except FileNotFoundError:
        raise EnvironmentFailure(
            f"there is no bridge {name}",
            hint="kubeauthn bridge list shows those that are; bridge kubeconfig writes a kubeconfig for a new one",
        ) from None
    try:
        fields = json.loads(read_bounded(os.path.join(path, "definition.json"), FILE_BYTES))
        return Definition(**{**fields, "key": Secret(fields["key"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise EnvironmentFailure(f"{path}/definition.json cannot be read") from None


def forget(name: str) -> bool:
    """Remove what is kept of a bridge, so that no kubeconfig leads to it any more. False where it runs, or starts."""
    import fcntl
    import shutil

    path = directory_of(name)
    with one_at_a_time():
        if not os.path.isdir(path):
            return True  # by itself
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
    return True


def names() -> list[str]:
    path = state_directory()
    return sorted(name for name in os.listdir(path) if os.path.isfile(os.path.join(path, name, "definition.json")))


def define(
    context: str | None, options: dict[str, Any], idle_seconds: float | None = None, *, environment: str = ""
) -> Definition:
    """The bridge for this context and these options of `open_access`; the same as before if there is one.

    `environment`: the name of one, for a bridge that is for it alone, beside the one that all share.
    """
    from hashlib import sha256

    from kubeauthn.client.kubeconfig import resolve

    target = resolve(context, path=options.get("kubeconfig"), **{k: v for k, v in options.items() if k != "kubeconfig"})
    absolute = _variable(options.get("kubeconfig"))
    kept = {name: value for name, value in options.items() if value and name not in ("kubeconfig", "namespace")}
    resolved = target.context_name or ""
    purpose = [absolute, resolved, kept, target.cluster.server, *([environment] if environment else [])]
    identity = json.dumps(purpose, sort_keys=True, default=list)
    name = sha256(identity.encode()).hexdigest()[:20]
    with one_at_a_time():
        try:
            known = load(name)
        except EnvironmentFailure:
            known = None
        port, certificate, key = (known.port, known.certificate, known.key) if known else _new_identity()
        if known is not None and _is_taken(name, port):
            port = _free_port()  # somebody took it while the bridge was down
        definition = Definition(
            name=name,
            context=resolved,
            options=kept,
            kubeconfig=absolute,
            namespace=target.namespace or "",
            server=target.cluster.server,
            port=port,
            certificate=certificate,
            key=key,
            idle_seconds=idle_seconds or (known.idle_seconds if known else IDLE_SECONDS),
            apart=bool(environment),
        )
        if definition != known:
            save(definition)
    return definition


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Bridges are defined and forgotten one after the other.

    Commands that begin together would each make a port and a certificate, and those of all but the last be wrong; and
    a command that ends would take away what another is just writing.
    """
    import fcntl

    path = os.path.join(state_directory(), DEFINING)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {(error.strerror or 'cannot be opened').lower()}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _variable(given: str | None) -> str:
    """KUBECONFIG for the bridge, which has another working directory: absolute paths."""
    paths = candidate_paths(given or None, os.environ)
    if impossible := [path for path in paths if os.pathsep in path]:
        raise EnvironmentFailure(
            f"{impossible[0]}: the bridge gets its kubeconfig in KUBECONFIG, where {os.pathsep} separates two files",
            hint="a link to it from a path without one will do",
        )
    return os.pathsep.join(paths)


def _new_identity() -> tuple[int, str, Secret]:
    """A free port, and a certificate for it that is its own authority: a kubeconfig names both, so both stay."""
    from datetime import timedelta

    from kubeauthn._io.carrier.one_run import OneRunAuthority

    # The authority's key is forgotten here: nothing else will ever be signed by it.
    authority = OneRunAuthority("kubeauthn bridge", life=timedelta(days=3650))
    server = authority.server()
    return _free_port(), (server.certificate + authority.certificate).decode(), server.key


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def _is_taken(name: str, port: int) -> bool:
    """Whether somebody else listens there. Asked by connecting: to bind it could hinder a bridge that just starts."""
    import socket
    import time

    from kubeauthn.plugins.bridge import control

    end = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < end:
        if control.ask(name, "status") is not None:
            return False
        try:
            socket.create_connection(("127.0.0.1", port), _ANSWER_SECONDS).close()
        except OSError:
            return False
        time.sleep(0.05)
    return True
