"""One key on one PKCS#11 token: found, read and used. Errors name the part of the configuration at fault."""

from __future__ import annotations

from kubeauthn._core import object_id, pkcs11_uri
from kubeauthn._core.record import record
from kubeauthn._core.signature_forms import bit_string, digest_info, ecdsa_der, integer, sequence
from kubeauthn._secret import Secret
from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, SignerRequestError
from kubeauthn.plugins.pin import WRONG_BEFORE, written_pin
from kubeauthn.plugins.pkcs11_module import in_words, load_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kubeauthn._core.signerwire import SigningAlgorithm
    from kubeauthn.plugins.pin import Pins

_RSA_ENCRYPTION = bytes.fromhex("300d06092a864886f70d0101010500")
_EC_PUBLIC_KEY = bytes.fromhex("06072a8648ce3d0201")
_ED25519 = bytes.fromhex("300506032b6570")
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
        raise SignerRequestError(
            f"the signer's configuration lacks {', '.join(missing)}",
            hint="kubeauthn signer doctor shows what is there and writes the entry; tokenLabel may stand for slotId",
        )
    return Place(module, slot, label, uri.serial, objects, uri.pin)


class TokenKey:
    """The key while the token is open. `close` ends the sessions; the module stays loaded."""

    def __init__(self, place: Place, pins: Pins) -> None:
        self._place = place
        self._pins = pins
        self._library = load_module(place.module)
        self._token: Any = None
        self._session: Any = None
        self._logged_in = self._writing = False
        self._pin: Secret | None = None

    @property
    def token_name(self) -> str:
        return f"the token {str(self._token.label).strip()!r}" if self._token is not None else "the token"

    @property
    def serial(self) -> bytes:
        """Tells one token from another that was put in its place."""
        self._open()
        return bytes(self._token.serial)

    def certificate(self) -> bytes:
        """DER, and behind it the intermediates that the token has."""
        import pkcs11

        self._open()
        with in_words("reading the certificate", self.token_name):
            found = self._find(pkcs11.ObjectClass.CERTIFICATE)
            if len(found) > 1:
                raise KeyStoreError(f"objectId: {self.token_name} has {len(found)} certificates for it")
            if not found:
                raise KeyStoreAbsent(
                    f"objectId: {self.token_name} has no certificate for it",
                    hint="kubeauthn signer request-certificate makes one; or name a file: pathCert",
                )
            return b"".join(self._chain(found[0]))

    def _chain(self, leaf: Any) -> list[bytes]:
        import pkcs11

        others = list(self._session.get_objects({pkcs11.Attribute.CLASS: pkcs11.ObjectClass.CERTIFICATE}))
        chain, at = [bytes(leaf[pkcs11.Attribute.VALUE])], leaf
        while len(chain) < _LONGEST_CHAIN:
            issuer = _attribute(at, pkcs11.Attribute.ISSUER)
            if not issuer or issuer == _attribute(at, pkcs11.Attribute.SUBJECT):
                break
            above = next((one for one in others if _attribute(one, pkcs11.Attribute.SUBJECT) == issuer), None)
            # A root is not sent: the server has it, or does not trust it.
            if above is None or _attribute(above, pkcs11.Attribute.ISSUER) == issuer:
                break
            chain.append(bytes(above[pkcs11.Attribute.VALUE]))
            at = above
        return chain

    def public_key(self) -> bytes:
        """SubjectPublicKeyInfo, from the public key object."""
        import pkcs11

        self._open()
        with in_words("reading the public key", self.token_name):
            found = self._find(pkcs11.ObjectClass.PUBLIC_KEY)
            if not found:
                raise KeyStoreError(f"objectId: {self.token_name} has no public key for it")
            key = found[0]
            if key.key_type == pkcs11.KeyType.RSA:
                numbers = (key[pkcs11.Attribute.MODULUS], key[pkcs11.Attribute.PUBLIC_EXPONENT])
                content = sequence(*(integer(int.from_bytes(number, "big")) for number in numbers))
                return sequence(_RSA_ENCRYPTION, bit_string(content))
            point = _octets(bytes(key[pkcs11.Attribute.EC_POINT]))
            if key.key_type == pkcs11.KeyType.EC_EDWARDS:
                return sequence(_ED25519, bit_string(point))
            return sequence(sequence(_EC_PUBLIC_KEY, bytes(key[pkcs11.Attribute.EC_PARAMS])), bit_string(point))

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        import pkcs11

        self.log_in()
        with in_words("finding the key", self.token_name):
            found = self._find(pkcs11.ObjectClass.PRIVATE_KEY)
        if len(found) != 1:
            count = "no private key" if not found else f"{len(found)} private keys"
            # Some modules drop the objects of a token that was pulled out, and keep the session.
            kind = KeyStoreAbsent if not found else KeyStoreError
            raise kind(f"objectId: {self.token_name} has {count} for it")
        key = found[0]
        with in_words(f"signing ({algorithm})", self.token_name):
            # Some keys, such as a PIV card's slot 9c, want the PIN with every signature.
            again = self._pin.reveal() if self._pin is not None and _always_authenticates(key) else None
            return _signed(key, digest, algorithm, again)

    def install(self, certificate: bytes, subject: bytes, issuer: bytes) -> None:
        """Put a certificate beside the key. The one it replaces goes only when the new one is there."""
        import pkcs11

        self.log_in(writing=True)
        with in_words("writing the certificate", self.token_name):
            keys = self._find(pkcs11.ObjectClass.PRIVATE_KEY)
            if len(keys) != 1:
                raise KeyStoreError(f"objectId: {self.token_name} has {len(keys)} private keys for it")
            identifier = bytes(keys[0][pkcs11.Attribute.ID])
            old = self._find(pkcs11.ObjectClass.CERTIFICATE)
            self._session.create_object(
                {
                    pkcs11.Attribute.CLASS: pkcs11.ObjectClass.CERTIFICATE,
                    pkcs11.Attribute.CERTIFICATE_TYPE: pkcs11.CertificateType.X_509,
                    pkcs11.Attribute.TOKEN: True,
                    pkcs11.Attribute.ID: identifier,
                    pkcs11.Attribute.LABEL: str(_attribute(keys[0], pkcs11.Attribute.LABEL) or ""),
                    pkcs11.Attribute.SUBJECT: subject,
                    pkcs11.Attribute.ISSUER: issuer,
                    pkcs11.Attribute.VALUE: certificate,
                }
            )
            for one in old:
                one.destroy()

    def log_in(self, *, writing: bool = False) -> None:
        """At most one attempt per PIN, and none where the token says that it is locked."""
        import pkcs11

        self._open()
        if self._logged_in and self._writing >= writing:
            return
        with in_words("looking at the token", self.token_name):
            flags = self._token.flags
        if flags & pkcs11.TokenFlag.USER_PIN_LOCKED:
            raise KeyStoreError(
                f"the PIN of {self.token_name} is locked", hint="unblock it with the PUK or the security officer's PIN"
            )
        secret: Any = None
        if flags & pkcs11.TokenFlag.PROTECTED_AUTHENTICATION_PATH:
            secret = pkcs11.PROTECTED_AUTH  # typed on the reader's own keys
        elif flags & pkcs11.TokenFlag.LOGIN_REQUIRED:
            question = f"PIN of {self.token_name}"
            if flags & pkcs11.TokenFlag.USER_PIN_COUNT_LOW:
                question += f" {WRONG_BEFORE}"
            if flags & pkcs11.TokenFlag.USER_PIN_FINAL_TRY:
                question += " (last attempt before it locks)"
            if self._pin is None:
                written = self._place.pin
                self._pin = written_pin(question, written.reveal()) if written else self._pins(question)
            secret = self._pin.reveal()
        if secret is not None:
            self._close_session()
            try:
                with in_words("logging in", self.token_name):
                    self._session = self._token.open(user_pin=secret, rw=writing)
            except KeyStoreError:
                self._pin = None
                raise
        self._logged_in, self._writing = True, writing

    def close(self) -> None:
        self._close_session()
        self._token = None
        self._pin = None

    def forget_module(self) -> None:
        """Close, and have the module look at its slots anew: some notice a token's return only so."""
        import pkcs11

        self.close()
        try:
            self._library.reinitialize()
        except pkcs11.PKCS11Error as error:
            raise KeyStoreAbsent(f"the module finds no token any more ({type(error).__name__})") from None

    def _close_session(self) -> None:
        import pkcs11

        session, self._session, self._logged_in = self._session, None, False
        if session is not None:
            try:
                session.close()
            except pkcs11.PKCS11Error:
                pass  # it was pulled out: nothing is left to close

    def _open(self) -> None:
        if self._session is not None:
            return
        with in_words("looking for the token"):
            self._library.initialize()  # nothing happens where it is, and after a removal it may not be
            self._token = self._find_token()
            self._session = self._token.open()

    def _find_token(self) -> Any:
        place = self._place
        slots = {slot.slot_id: slot for slot in self._library.get_slots()}
        if place.slot is not None:
            if place.slot not in slots:
                known = ", ".join(map(str, sorted(slots))) or "none"
                raise KeyStoreAbsent(f"slotId: there is no slot {place.slot}; the module has {known}")
            slots = {place.slot: slots[place.slot]}
        tokens = [token for slot in slots.values() if (token := _token_in(slot)) is not None]
        if place.token_label:
            tokens = [token for token in tokens if str(token.label).strip() == place.token_label.strip()]
        if place.token_serial:
            wanted = place.token_serial.encode()
            tokens = [token for token in tokens if bytes(token.serial).strip() == wanted.strip()]
        if not tokens:
            asked = f"slot {place.slot}" if place.slot is not None else f"token {place.token_label or 'of that serial'}"
            raise KeyStoreAbsent(f"no token: {asked} is empty or not there", hint="insert the token and try again")
        if len(tokens) > 1:
            raise KeyStoreError(f"tokenLabel: {len(tokens)} tokens are called that: name a slotId or a serial")
        return tokens[0]

    def _find(self, kind: Any) -> list[Any]:
        import pkcs11

        for wanted in self._place.objects:
            attribute = pkcs11.Attribute.ID if isinstance(wanted, bytes) else pkcs11.Attribute.LABEL
            found = list(self._session.get_objects({pkcs11.Attribute.CLASS: kind, attribute: wanted}))
            if found:
                return found
        return []


def _token_in(slot: Any) -> Any:
    import pkcs11

    try:
        return slot.get_token()
    except (pkcs11.TokenNotPresent, pkcs11.TokenNotRecognised, pkcs11.SlotIDInvalid, pkcs11.DeviceRemoved):
        return None


def _signed(key: Any, digest: bytes, algorithm: SigningAlgorithm, pin: str | None) -> bytes:
    import pkcs11

    kind = key.key_type
    if kind == pkcs11.KeyType.RSA:
        if algorithm.padding == "pss":
            name = algorithm.hash.upper()
            parameter = (getattr(pkcs11.Mechanism, name), getattr(pkcs11.MGF, name), algorithm.salt)
            return bytes(key.sign(digest, mechanism=pkcs11.Mechanism.RSA_PKCS_PSS, mechanism_param=parameter, pin=pin))
        if algorithm.hash:
            return bytes(key.sign(digest_info(digest, algorithm.hash), mechanism=pkcs11.Mechanism.RSA_PKCS, pin=pin))
    elif kind == pkcs11.KeyType.EC and algorithm.hash and algorithm.padding != "pss":
        return ecdsa_der(bytes(key.sign(digest, mechanism=pkcs11.Mechanism.ECDSA, pin=pin)))
    elif kind == pkcs11.KeyType.EC_EDWARDS and not algorithm.hash:
        return bytes(key.sign(digest, mechanism=pkcs11.Mechanism.EDDSA, pin=pin))
    raise KeyStoreError(f"objectId: the key is {getattr(kind, 'name', kind)}, and cannot sign as asked: {algorithm}")


def _always_authenticates(key: Any) -> bool:
    import pkcs11

    return bool(_attribute(key, pkcs11.Attribute.ALWAYS_AUTHENTICATE))


def _attribute(item: Any, attribute: Any) -> Any:
    """Not every module has every attribute."""
    import pkcs11

    try:
        return item[attribute]
    except (pkcs11.AttributeTypeInvalid, pkcs11.AttributeSensitive):
        return None


def _octets(point: bytes) -> bytes:
    """An EC point is wrapped in an OCTET STRING; some modules leave that out."""
    if len(point) > 2 and point[0] == 0x04:
        if point[1] == len(point) - 2:
            return point[2:]
        if point[1] == 0x81 and point[2] == len(point) - 3:
            return point[3:]
    return point
