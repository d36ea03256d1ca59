"""One key on one PKCS#11 token: found, read and used. Errors name the part of the configuration at fault."""

from __future__ import annotations

import os

from kubeauthn._core import object_id, pkcs11_uri
from kubeauthn._core.record import record
from kubeauthn._core.signature_forms import bit_string, digest_info, ecdsa_der, integer, sequence
from kubeauthn._secret import Secret
from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, PinRefused, SignerRequestError
from kubeauthn.plugins import cryptoki_table as ck
from kubeauthn.plugins.cryptoki import CryptokiError
from kubeauthn.plugins.module_turn import module_turn
from kubeauthn.plugins.pin import WRONG_BEFORE, written_pin
from kubeauthn.plugins.pkcs11_module import in_words, load_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from kubeauthn._core.signerwire import SigningAlgorithm
    from kubeauthn.plugins.cryptoki import Session, Token
    from kubeauthn.plugins.pin import Pins

_RSA_ENCRYPTION = bytes.fromhex("300d06092a864886f70d0101010500")
_EC_PUBLIC_KEY = bytes.fromhex("06072a8648ce3d0201")
_ED25519 = bytes.fromhex("300506032b6570")
_CURVE_BYTES = {bytes.fromhex("06082a8648ce3d030107"): 32, bytes.fromhex("06052b81040022"): 48}
"""Curves whose numbers may be shorter than a digest."""
_POINT_BYTES = (32, 65, 97, 133)
"""Of Ed25519, P-256, P-384 and P-521, without an OCTET STRING around it: none of these is another's with one."""
_BIT_STRING_OF_32 = bytes.fromhex("032100")
_LONGEST_CHAIN = 8


@record(frozen=True, slots=True)
class Place:
    """Where the key is, as the configuration says it. None is "not said"."""

    module: str
    slot: int | None
    token_label: str | None
    token_serial: str | None
    objects: tuple[bytes | str, ...]
    pin: Secret


_KEYS = ("pathLib", "slotId", "tokenLabel", "objectId", "uri")


def place_of(configuration: Mapping[str, str]) -> Place:
    """From `pathLib`, `slotId` or `tokenLabel`, `objectId`, or a `uri`. All that is missing is named at once."""
    uri = pkcs11_uri.parse(configuration.get("uri") or pkcs11_uri.SCHEME)
    module = configuration.get("pathLib") or uri.module_path or ""
    slot_text = configuration.get("slotId") or ""
    if slot_text and not (slot_text.isascii() and slot_text.isdecimal() and len(slot_text) <= 20):
        raise SignerRequestError("slotId must be a decimal number")
    slot = int(slot_text) if slot_text else uri.slot_id
    label = configuration.get("tokenLabel") or uri.token
    wanted = configuration.get("objectId") or ""
    if wanted:
        objects = object_id.readings(wanted)
    else:
        objects = tuple(part for part in (uri.object_id, uri.object_label) if part)[:1]
    missing = [
        name
        for name, there in (
            ("pathLib", bool(module)),
            ("slotId", slot is not None or bool(label or uri.serial)),
            ("objectId", bool(objects)),
        )
        if not there
    ]
    if missing:
        general = "kubeauthn signer doctor shows what is there and writes the entry; tokenLabel may stand for slotId"
        raise SignerRequestError(
            f"the signer's configuration lacks {', '.join(missing)}", hint=_misspelt(configuration) or general
        )
    return Place(module, slot, label, uri.serial, objects, uri.pin)


def _misspelt(configuration: Mapping[str, str]) -> str:
    """How the keys are written that are others in small letters and capitals alone."""
    by_letters = {key.lower(): key for key in _KEYS}
    pairs = [(key, by_letters.get(key.lower(), key)) for key in configuration]
    return ", ".join(f"{key} is written {right}" for key, right in pairs if key != right)


class TokenKey:
    """The key while the token is open. `close` ends the sessions; the module stays loaded."""

    def __init__(self, place: Place, pins: Pins) -> None:
        self._place = place
        self._pins = pins
        self._module = load_module(place.module)
        self._token: Token | None = None
        self._session: Session | None = None
        self._entered = self._writing = False
        self._on_the_reader = self._needs_login = False
        self._pin: Secret | None = None

    @property
    def token_name(self) -> str:
        return f"the token {self._token.label!r}" if self._token is not None else "the token"

    @property
    def serial(self) -> bytes:
        """Tells one token from another that was put in its place."""
        with self._module.in_use:
            self._open()
            assert self._token is not None  # noqa: S101  it is open
            return self._token.serial.encode()

    def certificate(self) -> bytes:
        """DER, and behind it the intermediates that the token has."""
        with self._module.in_use:
            session = self._open()
            return self._certificate(session)

    def _certificate(self, session: Session) -> bytes:
        with in_words("reading the certificate", self.token_name):
            found = self._find(session, ck.CERTIFICATE)
            if len(found) > 1:
                raise KeyStoreError(f"objectId: {self.token_name} has {len(found)} certificates for it")
            if not found:
                raise KeyStoreAbsent(
                    f"objectId: {self.token_name} has no certificate for it",
                    hint="kubeauthn signer request-certificate makes one; or name a file: pathCert",
                )
            return b"".join(_chain(session, found[0]))

    def public_key(self) -> bytes:
        """SubjectPublicKeyInfo, from the public key object."""
        with self._module.in_use:
            session = self._open()
            with in_words("reading the public key", self.token_name):
                found = self._find(session, ck.PUBLIC_KEY)
                if not found:
                    raise KeyStoreError(f"objectId: {self.token_name} has no public key for it")
                return _public_key_info(session, found[0])

    def sign(self, digest: bytes, algorithm: SigningAlgorithm, ready: Callable[[], None] = lambda: None) -> bytes:
        """`ready` is called when no PIN is asked for any more, and the token may wait for a touch."""
        with self._module.in_use:
            return self._sign(self.log_in(), digest, algorithm, ready)

    def _sign(self, session: Session, digest: bytes, algorithm: SigningAlgorithm, ready: Callable[[], None]) -> bytes:
        with in_words("finding the key", self.token_name, open_to_us=True):
            found = self._find(session, ck.PRIVATE_KEY)
        if len(found) != 1:
            count = "no private key" if not found else f"{len(found)} private keys"
            # Some modules drop the objects of a token that was pulled out, and keep the session.
            kind = KeyStoreAbsent if not found else KeyStoreError
            raise kind(f"objectId: {self.token_name} has {count} for it")
        key = found[0]
        try:
            with in_words(f"signing ({algorithm})", self.token_name, open_to_us=True):
                # Some keys, such as a PIV card's slot 9c, want the PIN with every signature.
                always = session.number(key, ck.ALWAYS_AUTHENTICATE)
                again = self._again() if always else None
                ready()
                return _signed(session, key, digest, algorithm, again)
        except KeyStoreError as error:
            # What was begun and not ended would be in the way of the next signature of this session.
            self._close_session()
            if isinstance(error, PinRefused):
                self._pin = None
            raise

    def _again(self) -> tuple[str | None]:
        if self._on_the_reader:
            return (None,)
        if self._pin is None:  # the token is open to all, and this key is not
            self._pin = self._asked(f"PIN of {self.token_name}")
        return (self._pin.reveal(),)

    def _asked(self, question: str) -> Secret:
        written = self._place.pin
        return written_pin(question, written.reveal()) if written else self._pins(question)

    def install(self, certificate: bytes, subject: bytes, issuer: bytes) -> None:
        """Put a certificate beside the key. The one it replaces goes only when the new one is there."""
        with self._module.in_use:
            self._install(self.log_in(writing=True), certificate, subject, issuer)

    def _install(self, session: Session, certificate: bytes, subject: bytes, issuer: bytes) -> None:
        with in_words("writing the certificate", self.token_name):
            keys = self._find(session, ck.PRIVATE_KEY)
            if len(keys) != 1:
                raise KeyStoreError(f"objectId: {self.token_name} has {len(keys)} private keys for it")
            old = self._find(session, ck.CERTIFICATE)
            session.create(
                {
                    ck.CLASS: ck.CERTIFICATE,
                    ck.CERTIFICATE_TYPE: ck.X_509,
                    ck.TOKEN: True,
                    ck.ID: session.value(keys[0], ck.ID) or b"",
                    ck.LABEL: session.value(keys[0], ck.LABEL) or b"",
                    ck.SUBJECT: subject,
                    ck.ISSUER: issuer,
                    ck.VALUE: certificate,
                }
            )
            for one in old:
                session.destroy(one)

    def log_in(self, *, writing: bool = False) -> Session:
        """At most one attempt per PIN, and none where the token says that it is locked."""
        session = self._open()
        if self._entered and self._writing >= writing and (session.logged_in or not self._needs_login):
            return session
        assert self._token is not None  # noqa: S101  it is open
        slot = self._token.slot
        with self._turn(), in_words("looking at the token", self.token_name, before_login=True):
            flags = self._module.token(slot).flags
        if flags & ck.USER_PIN_LOCKED:
            raise KeyStoreError(
                f"the PIN of {self.token_name} is locked", hint="unblock it with the PUK or the security officer's PIN"
            )
        on_the_reader = self._on_the_reader = bool(flags & ck.PROTECTED_AUTHENTICATION_PATH)
        self._needs_login = on_the_reader or bool(flags & ck.LOGIN_REQUIRED)
        if self._needs_login and not on_the_reader:
            question = f"PIN of {self.token_name}"
            if flags & ck.USER_PIN_COUNT_LOW:
                question += f" {WRONG_BEFORE}"
            if flags & ck.USER_PIN_FINAL_TRY:
                question += " (last attempt before it locks)"
            if self._pin is None:
                self._pin = self._asked(question)
        # A PIN that is typed on the reader takes its time, and nobody else need wait for that.
        with self._turn(alone=self._needs_login and not on_the_reader):
            if self._needs_login or writing:
                self._close_session()
                with in_words("opening a session", self.token_name, before_login=True):
                    session = self._session = self._module.open(slot, writing=writing)
            if self._needs_login:
                try:
                    with in_words("logging in", self.token_name):
                        session.log_in(self._pin.reveal() if self._pin is not None else None)
                except KeyStoreError:
                    self._pin = None
                    raise
        self._entered, self._writing = True, writing
        return session

    def _turn(self, *, alone: bool = False) -> AbstractContextManager[None]:
        return module_turn(os.path.realpath(self._place.module), alone=alone)

    def close(self) -> None:
        with self._module.in_use:
            self._close_session()
        self._token = None
        self._pin = None

    def forget_module(self) -> None:
        """Close, and have the module look at its slots anew: some notice a token's return only so."""
        with self._module.in_use:
            self.close()
            try:
                with self._turn():
                    self._module.reinitialize()
            except CryptokiError as error:
                raise KeyStoreAbsent(f"the module finds no token any more ({error})") from None

    def _close_session(self) -> None:
        session, self._session, self._entered = self._session, None, False
        if session is not None:
            try:
                session.close()
            except CryptokiError:
                pass  # it was pulled out: nothing is left to close

    def _open(self) -> Session:
        if self._session is not None and not self._session.stands:
            self._session, self._entered = None, False  # the module was begun anew, for another key of it
        if self._session is None:
            with self._turn(), in_words("looking for the token", before_login=True):
                self._module.initialize()  # nothing happens where it is, and after a removal it may not be
                self._token = self._find_token()
                self._session = self._module.open(self._token.slot)
        return self._session

    def _find_token(self) -> Token:
        place = self._place
        slots = self._module.slots()
        if place.slot is not None:
            if place.slot not in slots:
                known = ", ".join(map(str, sorted(slots))) or "none"
                raise KeyStoreAbsent(f"slotId: there is no slot {place.slot}; the module has {known}")
            slots = [place.slot]
        tokens = there = [token for slot in slots if (token := self._token_in(slot)) is not None]
        if place.token_label:
            tokens = [token for token in tokens if token.label.strip() == place.token_label.strip()]
        if place.token_serial:
            tokens = [token for token in tokens if token.serial.strip() == place.token_serial.strip()]
        if not tokens:
            asked = f"slot {place.slot}" if place.slot is not None else f"token {place.token_label or 'of that serial'}"
            labels = ", ".join(repr(token.label.strip()) for token in there if token.label.strip())
            hint = "insert the token and try again" + (f"; what is there is called {labels}" if labels else "")
            raise KeyStoreAbsent(f"no token: {asked} is empty or not there", hint=hint)
        if len(tokens) > 1:
            raise KeyStoreError(f"tokenLabel: {len(tokens)} tokens are called that: name a slotId or a serial")
        return tokens[0]

    def _token_in(self, slot: int) -> Token | None:
        try:
            return self._module.token(slot)
        except CryptokiError as error:
            if error.name in ("TOKEN_NOT_PRESENT", "TOKEN_NOT_RECOGNIZED", "SLOT_ID_INVALID", "DEVICE_REMOVED"):
                return None
            raise

    def _find(self, session: Session, kind: int) -> list[int]:
        for wanted in self._place.objects:
            attribute = ck.ID if isinstance(wanted, bytes) else ck.LABEL
            if found := session.find({ck.CLASS: kind, attribute: wanted}):
                return found
        return []


def _chain(session: Session, leaf: int) -> list[bytes]:
    others = session.find({ck.CLASS: ck.CERTIFICATE})
    chain, at = [session.value(leaf, ck.VALUE) or b""], leaf
    while len(chain) < _LONGEST_CHAIN:
        issuer = session.value(at, ck.ISSUER)
        if not issuer or issuer == session.value(at, ck.SUBJECT):
            break
        above = next((one for one in others if session.value(one, ck.SUBJECT) == issuer), None)
        # A root is not sent: the server has it, or does not trust it.
        if above is None or session.value(above, ck.ISSUER) == issuer:
            break
        chain.append(session.value(above, ck.VALUE) or b"")
        at = above
    return chain


def _public_key_info(session: Session, key: int) -> bytes:
    kind = session.number(key, ck.KEY_TYPE)
    if kind == ck.RSA:
        numbers = (session.value(key, ck.MODULUS), session.value(key, ck.PUBLIC_EXPONENT))
        content = sequence(*(integer(int.from_bytes(number or b"", "big")) for number in numbers))
        return sequence(_RSA_ENCRYPTION, bit_string(content))
    point = _octets(session.value(key, ck.EC_POINT) or b"")
    if kind == ck.EC_EDWARDS:
        if len(point) == 35 and point.startswith(_BIT_STRING_OF_32):  # as version 3.0 of the standard was read by some
            point = point[3:]
        if len(point) != 32:
            raise KeyStoreError("objectId: of the Edwards curves Ed25519 alone is known here")
        return sequence(_ED25519, bit_string(point))
    return sequence(sequence(_EC_PUBLIC_KEY, session.value(key, ck.EC_PARAMS) or b""), bit_string(point))


def _signed(
    session: Session, key: int, digest: bytes, algorithm: SigningAlgorithm, again: tuple[str | None] | None
) -> bytes:
    kind = session.number(key, ck.KEY_TYPE)
    if kind == ck.RSA:
        if algorithm.padding == "pss":
            parameter = ck.PssParameters(*ck.PSS_HASHES[algorithm.hash], algorithm.salt)
            return session.sign(key, digest, ck.RSA_PKCS_PSS, parameter, again=again)
        if algorithm.hash:
            return session.sign(key, digest_info(digest, algorithm.hash), ck.RSA_PKCS, again=again)
    elif kind == ck.EC and algorithm.hash and algorithm.padding != "pss":
        # A hash longer than the curve's numbers counts with its first bytes, and some tokens take no more.
        size = _CURVE_BYTES.get(session.value(key, ck.EC_PARAMS) or b"") if len(digest) > 32 else None
        return ecdsa_der(session.sign(key, digest[:size], ck.ECDSA, again=again))
    elif kind == ck.EC_EDWARDS and not algorithm.hash:
        return session.sign(key, digest, ck.EDDSA, again=again)
    name = ck.KEY_TYPES.get(kind, str(kind)) if kind is not None else "of no kind"
    raise KeyStoreError(f"objectId: the key is {name}, and cannot sign as asked: {algorithm}")


def _octets(point: bytes) -> bytes:
    """An EC point is wrapped in an OCTET STRING; some modules leave that out."""
    if len(point) > 2 and point[0] == 0x04 and len(point) not in _POINT_BYTES:
        if point[1] == len(point) - 2:
            return point[2:]
        if point[1] == 0x81 and point[2] == len(point) - 3:
            return point[3:]
    return point
