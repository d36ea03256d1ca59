"""SHA-256 without OpenSSL: `hashlib` loads it, and a plugin that answers from its cache needs nothing else of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # 3.12 and newer; `random` takes its hash in the same way
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256


def sha256_hex(content: bytes) -> str:
    return sha256(content).hexdigest()
