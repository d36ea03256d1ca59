"""What the reading of a certificate raises that is none: not every one of these is a ValueError."""

from __future__ import annotations

from cryptography import x509

NOT_A_CERTIFICATE = (
    ValueError,
    OverflowError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
