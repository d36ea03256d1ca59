"""For the service behind a proxy that asks `/auth`: the user, from the headers or from the signed assertion.

user = user_from_headers(request.headers.items())                       # if only the proxy can reach the service
user = AssertionVerifier(jwks, audience="billing").verify(assertion)    # in any case
"""

from __future__ import annotations

from kubeauthn._core.identity_headers import HeaderNames, decode_list, decode_value, user_from_headers
from kubeauthn.server.assertion import AssertionVerifier

__all__ = ["AssertionVerifier", "user_from_headers", "HeaderNames", "decode_list", "decode_value"]
