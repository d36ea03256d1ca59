"""`python -m kubeauthn.plugins.bridge.credential NAME`: the exec plugin in a bridge's kubeconfig."""

from __future__ import annotations

import sys

from kubeauthn.plugin import credential


def main() -> None:
    def ask(request: credential.Request) -> credential.Certificate:
        from kubeauthn.plugins.bridge.starting import credential as from_bridge

        if len(sys.argv) != 2:
            raise credential.Refuse("give the bridge's name, and nothing else")
        answer = from_bridge(sys.argv[1])
        return credential.Certificate(answer["certificate"], answer["key"], expires_at=answer["expires_at"])

    credential.run(ask)


if __name__ == "__main__":
    main()
