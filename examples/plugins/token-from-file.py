#!/usr/bin/env python3
"""A credential plugin: the token that another program keeps fresh in a file."""

from pathlib import Path

from kubeauthn.plugin import credential


def get_token(request: credential.Request) -> credential.Token:
    file = Path.home() / ".config" / "my-plugin" / "token"
    return credential.Token(file.read_text().strip(), expires_in=300)


credential.run(get_token)
