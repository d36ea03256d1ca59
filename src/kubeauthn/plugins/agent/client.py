"""A signer's side of the agent: ask it if it is there, else go on without."""

from __future__ import annotations

import os

from kubeauthn.errors import EnvironmentFailure, KeyStoreAbsent, KeyStoreError, NotSigned, PinRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from kubeauthn.plugin.signer import Configuration, SigningAlgorithm

_ERRORS = {"PinRefused": PinRefused, "KeyStoreAbsent": KeyStoreAbsent, "NotSigned": NotSigned}


def through_agent(kind: str, configuration: Configuration) -> AgentSigner | None:
    """The agent's signer for this very key; None where no agent runs, or it was not started for this key."""
    runtime = os.environ.get("KUBEAUTHN_SIGNER_AGENT") or os.environ.get("XDG_RUNTIME_DIR")
    if not runtime:
        return None  # the usual case, at no cost
    from kubeauthn.plugins.agent.wire import socket_path

    path = socket_path(os.environ)
    if not path or not os.path.lexists(path):
        return None
    return _connected(path, kind, configuration)


def _connected(path: str, kind: str, configuration: Configuration) -> AgentSigner | None:
    import socket

    from kubeauthn.plugins.agent import wire

    wire.check_place(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(wire.SECONDS)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None  # an agent that ended and left its socket
    try:
        wire.check_peer(connection)
        agent = AgentSigner(connection, configuration)
        hello = agent.ask({"signer": kind, "configuration": wire.identity(configuration)})
    except BaseException:
        connection.close()
        raise
    if not hello.get("mine"):
        connection.close()
        return None
    return agent


class AgentSigner:
    """Asks the agent. The PIN, where the agent needs it, is asked for here: this process has the terminal."""

    def __init__(self, connection: socket.socket, configuration: Configuration) -> None:
        self._connection = connection
        self._configuration = configuration

    def certificate(self) -> bytes:
        from base64 import b64decode

        return b64decode(self._answer({"do": "certificate"})["certificate"])

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        from base64 import b64decode, b64encode

        from kubeauthn._core.signerwire import encode_options
        from kubeauthn.plugins.touch import tell_of_touch

        tell_of_touch(self._configuration)  # here, where the person is: the agent may have no terminal at all
        options_type, options = encode_options(algorithm)
        message = {"do": "sign", "digest": b64encode(digest).decode(), "type": options_type, "options": options}
        return b64decode(self._answer(message)["signature"])

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        from kubeauthn.plugins.agent import wire

        try:
            wire.send(self._connection, message)
            reply = wire.receive(self._connection)
        except OSError as error:
            raise EnvironmentFailure(f"signer agent: {(error.strerror or 'no answer in time').lower()}") from None
        if reply is None:
            raise EnvironmentFailure("signer agent: it ended the connection")
        if "error" in reply:
            kind = _ERRORS.get(str(reply.get("class")), KeyStoreError)
            raise kind(f"signer agent: {reply['error']}", hint=reply.get("hint"))
        return reply

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        reply = self.ask(message)
        if "pinNeeded" in reply:
            from kubeauthn.plugins.pin import pins_of

            pin = pins_of(self._configuration)(str(reply["pinNeeded"]))
            reply = self.ask({**message, "pin": pin.reveal()})  # once: what is wrong is not sent again
        return reply
