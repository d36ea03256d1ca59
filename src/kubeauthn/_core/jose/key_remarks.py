"""What an operator should know of an issuer's keys: those that kube-apiserver and we treat differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeauthn._core.jose.embedded_key import key_fault
from kubeauthn._core.jose.jwk import OtherPurpose, UnusableKey, read_key
from kubeauthn._core.jose.keys import listed_keys

if TYPE_CHECKING:
    from collections.abc import Iterator


def key_remarks(document: object) -> Iterator[str]:
    """One for each such key. A key for another purpose, as many issuers publish for encryption, is none.

    Raises KeySetError for what is no key set.
    """
    for index, jwk in enumerate(listed_keys(document)):
        reason = ""
        try:
            read_key(jwk)
        except OtherPurpose as error:
            reason = str(error)
            if not key_fault(jwk):
                continue
        except UnusableKey as error:
            reason = str(error)
        if key_fault(jwk):
            reason = reason or "a member of it is malformed"
            yield f"keys[{index}] cannot be read by kube-apiserver, which drops the whole key set for it: {reason}"
        elif reason:
            yield f"keys[{index}] is not used, and kube-apiserver uses it: {reason}"
