"""The few TPM 2.0 commands that signing needs, as bytes in and values out (TPM Library Specification, parts 2 and 3).

A command is authorised with a password session: the value travels as it is, over a device file or a local socket.
"""

from __future__ import annotations

import struct

from kubeauthn._core.record import record
from kubeauthn._core.tpm2_codes import PASSING, describe
from kubeauthn._secret import Secret
from kubeauthn.errors import KeyStoreError, NotSigned, PinRefused

RSA, ECC = 0x0001, 0x0023
NULL = 0x0010
RSASSA, RSAES, RSAPSS, OAEP, ECDSA, ECDAA = 0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x001A
HASHES = {"sha1": 0x0004, "sha256": 0x000B, "sha384": 0x000C, "sha512": 0x000D}
CURVES = {0x0003: "P-256", 0x0004: "P-384", 0x0005: "P-521"}

FIRST_PERSISTENT, LAST_PERSISTENT = 0x81000000, 0x81FFFFFF
FIRST_NV_INDEX, LAST_NV_INDEX = 0x01000000, 0x01FFFFFF
OWNER, NULL_HIERARCHY = 0x40000001, 0x40000007
SIGNS, RESTRICTED = 1 << 18, 1 << 16
NV_AUTH_READ, NV_OWNER_READ = 1 << 18, 1 << 17
NV_WRITTEN = 1 << 29
NV_CHUNK = 512
"""No TPM has a smaller buffer for one read of non-volatile memory."""
HEADER_BYTES = 10
LONGEST_RESPONSE = 4096

_NO_SESSIONS, _SESSIONS = 0x8001, 0x8002
_PASSWORD_SESSION = 0x40000009
_HASH_CHECK = 0x8024
_READ_PUBLIC, _SIGN, _GET_CAPABILITY, _NV_READ_PUBLIC, _NV_READ = 0x173, 0x15D, 0x17A, 0x169, 0x14E
_CAPABILITY_HANDLES = 1
_AUTHORISATION_CODES = (0x8E, 0xA2)  # AUTH_FAIL counts against the lockout, BAD_AUTH does not


@record(frozen=True, slots=True)
class PublicArea:
    """What a key's public part says. `hash` is that of the scheme the key is bound to, if it is."""

    type: int
    attributes: int
    scheme: int
    hash: int | None
    modulus: int = 0
    exponent: int = 0
    curve: str = ""
    x: int = 0
    y: int = 0


@record(frozen=True, slots=True)
class NvPublic:
    """An index of non-volatile memory."""

    attributes: int
    size: int


class Reader:
    """Takes a response apart, and never reads past its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise KeyStoreError("the TPM's response is cut short")
        self._at, taken = end, self._data[self._at : end]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        return self.take(self.number(2))


def response_size(header: bytes) -> int:
    """How long the whole response is, from its first ten bytes."""
    size = int.from_bytes(header[2:6], "big")
    if len(header) != HEADER_BYTES or not HEADER_BYTES <= size <= LONGEST_RESPONSE:
        raise KeyStoreError("what answered is no TPM 2.0: its response has no sensible length")
    return size


def parameters(response: bytes, what: str) -> Reader:
    """The content of a response, or the TPM's error in words; `what` says what was asked."""
    reader = Reader(response)
    tag, size, code = reader.number(2), reader.number(4), reader.number(4)
    if size != len(response):
        raise KeyStoreError(f"the TPM's response to {what} says {size} bytes and has {len(response)}")
    if code:
        name, meaning = describe(code)
        kind: type[KeyStoreError] = NotSigned if code in PASSING else KeyStoreError
        if code & 0x80 and (code & 0x3F | 0x80) in _AUTHORISATION_CODES:
            kind = PinRefused
        raise kind(f"the TPM refused {what}: {meaning} ({name}, 0x{code:03x})")
    if tag == _SESSIONS:
        reader.number(4)  # the size of the parameters; the session's part behind them says nothing we need
    return reader


def read_public(handle: int) -> bytes:
    return _command(_READ_PUBLIC, struct.pack(">I", handle))


def public_area(reader: Reader) -> PublicArea:
    """`TPM2B_PUBLIC` of an RSA or elliptic-curve key."""
    area = Reader(reader.sized())
    kind = area.number(2)
    area.number(2)  # the hash of the key's name
    attributes = area.number(4)
    area.sized()  # policy
    if kind not in (RSA, ECC):
        raise KeyStoreError(f"the TPM's key is neither RSA nor elliptic curve (type 0x{kind:04x})")
    if area.number(2) != NULL:  # the symmetric part of a key that protects others
        area.number(4)
    scheme = area.number(2)
    hash_algorithm = area.number(2) if scheme not in (NULL, RSAES) else None
    if scheme == ECDAA:
        area.number(2)
    if kind == RSA:
        area.number(2)  # the size in bits, which the modulus says too
        exponent = area.number(4) or 65537
        modulus = int.from_bytes(area.sized(), "big")
        return PublicArea(kind, attributes, scheme, hash_algorithm, modulus=modulus, exponent=exponent)
    curve = area.number(2)
    if area.number(2) != NULL:  # a key derivation scheme
        area.number(2)
    if curve not in CURVES:
        raise KeyStoreError(f"the TPM's key is on a curve that TLS does not use here (0x{curve:04x})")
    x, y = int.from_bytes(area.sized(), "big"), int.from_bytes(area.sized(), "big")
    return PublicArea(kind, attributes, scheme, hash_algorithm, curve=CURVES[curve], x=x, y=y)


def sign(handle: int, auth: Secret, digest: bytes, scheme: int, hash_name: str) -> bytes:
    """Sign a digest that the TPM did not make itself: an empty ticket, so the key must not be restricted."""
    ticket = struct.pack(">HIH", _HASH_CHECK, NULL_HIERARCHY, 0)
    body = _sized(digest) + struct.pack(">HH", scheme, HASHES[hash_name]) + ticket
    return _command(_SIGN, struct.pack(">I", handle), body, auth=auth)


def signature(reader: Reader) -> bytes | tuple[int, int]:
    """`TPMT_SIGNATURE`: the bytes of an RSA signature, or ECDSA's two numbers."""
    algorithm = reader.number(2)
    reader.number(2)  # hash
    if algorithm in (RSASSA, RSAPSS):
        return reader.sized()
    if algorithm == ECDSA:
        return int.from_bytes(reader.sized(), "big"), int.from_bytes(reader.sized(), "big")
    raise KeyStoreError(f"the TPM answered with a signature that was not asked for (0x{algorithm:04x})")


def get_handles(first: int, count: int = 64) -> bytes:
    return _command(_GET_CAPABILITY, b"", struct.pack(">III", _CAPABILITY_HANDLES, first, count))


def handles(reader: Reader, last: int) -> tuple[int, ...]:
    """The handles of one kind; `last` ends the kind."""
    reader.number(1)  # whether there are more
    reader.number(4)
    found = (reader.number(4) for _ in range(reader.number(4)))
    return tuple(handle for handle in found if handle <= last)


def nv_read_public(index: int) -> bytes:
    return _command(_NV_READ_PUBLIC, struct.pack(">I", index))


def nv_public(reader: Reader) -> NvPublic:
    area = Reader(reader.sized())
    area.take(6)  # the index itself, and the hash of its name
    attributes = area.number(4)
    area.sized()  # policy
    return NvPublic(attributes, area.number(2))


def nv_read(index: int, public: NvPublic, auth: Secret, offset: int, size: int) -> bytes:
    """Read with the index's own authorisation where it allows that, else with the owner's."""
    by = index if public.attributes & NV_AUTH_READ else OWNER
    return _command(_NV_READ, struct.pack(">II", by, index), struct.pack(">HH", size, offset), auth=auth)


def nv_data(reader: Reader) -> bytes:
    return reader.sized()


def _command(code: int, handle_area: bytes, body: bytes = b"", *, auth: Secret | None = None) -> bytes:
    session = b""
    if auth is not None:
        one = struct.pack(">IHB", _PASSWORD_SESSION, 0, 0) + _sized(auth.reveal().encode())
        session = struct.pack(">I", len(one)) + one
    size = HEADER_BYTES + len(handle_area) + len(session) + len(body)
    tag = _NO_SESSIONS if auth is None else _SESSIONS
    return struct.pack(">HII", tag, size, code) + handle_area + session + body


def _sized(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data
