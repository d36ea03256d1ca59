"""Every limit of a login, in one place."""

from __future__ import annotations

LOGIN_SECONDS = 180.0
"""How long a person may take, unless told otherwise."""

LONGEST_LOGIN_SECONDS = 3600.0

ANSWER_SECONDS = 20.0
"""For one answer of the issuer, from the first byte sent to the last received."""

ANSWER_BYTES = 1 << 20

MARGIN_SECONDS = 60.0
MARGIN_SHARE = 0.1
"""A token is used until a minute before its end, or a tenth of its life where that is shorter."""

UNKNOWN_LIFE_SECONDS = 300.0
"""An access token of which nobody says when it ends is asked for again after this."""

DEVICE_INTERVAL_SECONDS = 5.0
"""RFC 8628, 3.2: where the issuer names no interval; also what `slow_down` adds."""

LONGEST_INTERVAL_SECONDS = 60.0

URL_CHARACTERS = 4096
"""Of an address that the issuer names."""

CODE_CHARACTERS = 8192
"""Of an authorization code, a device code or a refresh token."""

USER_CODE_CHARACTERS = 64

TOKEN_CHARACTERS = 64 << 10
"""Of a token that is given out; servers take no header that is longer."""
