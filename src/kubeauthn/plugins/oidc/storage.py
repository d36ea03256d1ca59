"""Where a login is kept between two commands: a file that is ours alone, the desktop's keyring, or nowhere.

The kubeconfig is never one of them: others read it, mail it, and keep it under version control.
"""

from __future__ import annotations

import os

from kubeauthn._core.light_sha256 import sha256_hex
from kubeauthn._io.private_store import PrivateStore, cache_home
from kubeauthn.plugins.oidc import session as sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn.plugins.oidc.session import Session
    from kubeauthn.plugins.oidc.settings import Settings

FOLDER = ("kubeauthn", "oidc")
SUFFIX = ".json"
KEYRING_SERVICE = "kubeauthn-oidc"


class Storage:
    """One login. What cannot be read is as good as absent."""

    def __init__(self, settings: Settings) -> None:
        self._kind = settings.store
        self._identity = settings.identity()
        self.name = sha256_hex(self._identity.encode())[:32]
        self.directory = PrivateStore(cache_home(os.environ), FOLDER)

    @property
    def shared(self) -> bool:
        """Whether other processes can see it, so that one login serves them all."""
        return self._kind != "none"

    def read(self) -> Session | None:
        content: bytes | str | None = None
        if self._kind == "file":
            content = self.directory.read(self.name + SUFFIX)
        elif self._kind == "keyring":
            content = _keyring("get_password", KEYRING_SERVICE, self.name)
        return None if content is None else sessions.decode(content, self._identity)

    def write(self, session: Session) -> None:
        content = sessions.encode(session, self._identity)
        if self._kind == "file":
            self.directory.write(self.name + SUFFIX, content)
        elif self._kind == "keyring":
            _keyring("set_password", KEYRING_SERVICE, self.name, content.decode())

    def forget(self) -> bool:
        """Whether there was something."""
        if self._kind == "keyring":
            if _keyring("get_password", KEYRING_SERVICE, self.name) is None:
                return False
            _keyring("delete_password", KEYRING_SERVICE, self.name)
            return True
        return self.directory.remove(self.name + SUFFIX)


def _keyring(operation: str, *arguments: str) -> Any:
    from kubeauthn.errors import EnvironmentFailure, MissingExtra

    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise MissingExtra("keyring", "keyring") from None
    try:
        return getattr(keyring, operation)(*arguments)
    except KeyringError as error:
        raise EnvironmentFailure(
            f"the keyring cannot be used: {type(error).__name__}", hint="unlock it, or use --store file"
        ) from None
