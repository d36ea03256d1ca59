"""The response codes of a TPM 2.0, by name and in words (TPM Library Specification, part 2, 6.6)."""

from __future__ import annotations

_FORMAT_ONE = {
    0x81: ("ASYMMETRIC", "the asymmetric algorithm is not supported"),
    0x82: ("ATTRIBUTES", "the key's attributes do not allow it"),
    0x83: ("HASH", "the hash is not supported, or not the one this key is bound to"),
    0x84: ("VALUE", "a value is out of range, or does not fit this key"),
    0x85: ("HIERARCHY", "the hierarchy is not enabled"),
    0x87: ("KEY_SIZE", "the key size is not supported"),
    0x89: ("MODE", "the mode is not supported"),
    0x8A: ("TYPE", "the handle is of another type"),
    0x8B: ("HANDLE", "there is nothing at that handle"),
    0x8D: ("RANGE", "a value is out of range"),
    0x8E: ("AUTH_FAIL", "the authorisation value is wrong, and the failure counts towards a lockout"),
    0x8F: ("NONCE", "an invalid nonce"),
    0x92: ("SCHEME", "the signing scheme is not one that this key allows"),
    0x95: ("SIZE", "something has the wrong size: the digest, perhaps"),
    0x97: ("SYMMETRIC", "the symmetric algorithm is not supported"),
    0x98: ("TAG", "the structure is not the one expected"),
    0x9B: ("SIGNATURE", "the signature is not valid"),
    0x9C: ("KEY", "the key cannot sign"),
    0x9D: ("POLICY_FAIL", "the key's policy is not met: keys with a policy are not supported here"),
    0xA2: ("BAD_AUTH", "the authorisation value is wrong"),
    0xA6: ("CURVE", "the curve is not supported"),
    0xA7: ("ECC_POINT", "a point is not on the curve"),
}
_FORMAT_ZERO = {
    0x100: ("INITIALIZE", "the TPM was not started up"),
    0x101: ("FAILURE", "the TPM is in failure mode"),
    0x120: ("DISABLED", "the command is disabled"),
    0x12E: ("AUTH_MISSING", "an authorisation is missing"),
    0x12F: ("AUTH_UNAVAILABLE", "the handle takes no password: keys with a policy are not supported here"),
    0x143: ("COMMAND_CODE", "the command is not supported"),
    0x148: ("NV_RANGE", "the read is past the end of the index"),
    0x149: ("NV_AUTHORIZATION", "the index does not allow this authorisation"),
    0x14A: ("NV_UNINITIALIZED", "the index was never written"),
    0x902: ("OBJECT_MEMORY", "the TPM has no memory left for objects"),
    0x903: ("SESSION_MEMORY", "the TPM has no memory left for sessions"),
    0x908: ("YIELDED", "the TPM put the command off"),
    0x90A: ("TESTING", "the TPM is testing itself"),
    0x920: ("NV_RATE", "the TPM limits writes to its memory"),
    0x921: ("LOCKOUT", "the TPM is locked: too many wrong authorisation values; it unlocks after its recovery time"),
    0x922: ("RETRY", "the TPM was busy"),
}

BUSY = (0x908, 0x90A, 0x922)
"""Warnings after which the same command may be sent again: nothing was tried yet."""
PASSING = (*BUSY, 0x902, 0x903)
"""The same, and those that end when other programs are done with the TPM."""


def describe(code: int) -> tuple[str, str]:
    """The code's name and what it means."""
    if code & 0x80:
        name, meaning = _FORMAT_ONE.get(code & 0x3F | 0x80, ("", ""))
    else:
        name, meaning = _FORMAT_ZERO.get(code & 0xFFF, ("", ""))
    return (f"TPM_RC_{name}", meaning) if name else ("TPM_RC", "a code that is not known here")


def response_code(response: bytes) -> int:
    return int.from_bytes(response[6:10], "big")
