from __future__ import annotations

from kubeauthn._core.impersonation import impersonation_headers
from kubeauthn._core.kubeconfig.model import Impersonation


def test_every_field_becomes_its_header() -> None:
    headers = impersonation_headers(
        Impersonation(
            user="jane", uid="42", groups=("a", "b"), extra=(("scopes", ("x", "y")), ("Acme.com/Ünit %", ("z",)))
        )
    )
    assert headers == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "42"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "y"),
        ("Impersonate-Extra-Acme.com%2F%C3%9Cnit%20%25", "z"),
    ]


def test_nobody_impersonated_no_header() -> None:
    assert impersonation_headers(Impersonation()) == []
