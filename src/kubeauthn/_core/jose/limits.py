"""How large tokens and key sets may be."""

from __future__ import annotations

TOKEN_CHARACTERS = 128 * 1024
"""A token with two hundred groups has about 10 KiB; an HTTP header, which carries it, often at most 8 to 64 KiB."""

JSON_DEPTH = 10_000
"""How deep JSON may be nested. Go's decoder has the same limit."""

KEYS = 256
"""Keys of one issuer. Real key sets have two to twenty; a token without a key id may have to be tried on every one."""

RSA_SMALLEST_BITS = 2048
RSA_LARGEST_BITS = 8192
RSA_LARGEST_EXPONENT = (1 << 32) - 1
"""Larger ones make each verification slow, and nobody has them."""

KNOWN_HEADERS = 64
"""Headers of verified tokens that a key set remembers: an issuer writes the same one for every token of a key."""
