"""`kubeauthn raw` and a server that sends it elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubeauthn.cli.main import main
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration.adapters.loopback_servers import redirecting_server


@pytest.mark.parametrize(
    ("location", "code", "said"),
    [
        ("https://127.0.0.1:1/x", 1, "the server answered 302, and redirects are not followed: https://127.0.0.1:1/x"),
        # What the server says wrong is no fault of whoever typed the command.
        ("javascript:alert(1)", 4, "names an address that is none"),
    ],
)
def test_a_redirect_is_told_and_not_followed(
    location: str,
    code: int,
    said: str,
    tmp_path: Path,
    own_environment: Path,
    capsys: pytest.CaptureFixture[str],
):
    ca = CertificateAuthority()
    with redirecting_server(ca, {"/x": location}) as (url, asked), ApiServer(ca=ca) as other:
        path = other.write_kubeconfig(tmp_path / "config", {"token": "s3cret"}, cluster={"server": url})
        assert main(["raw", "/x", "--kubeconfig", str(path)]) == code
    shown = capsys.readouterr()
    assert said in shown.err
    assert "s3cret" not in shown.out + shown.err
    assert asked == ["/x"]


def test_a_path_that_is_none_is_the_callers_fault(
    tmp_path: Path, own_environment: Path, capsys: pytest.CaptureFixture[str]
):
    with ApiServer() as server:
        path = server.write_kubeconfig(tmp_path / "config", {"token": "s3cret"})
        assert main(["raw", "/x\x7f", "--kubeconfig", str(path)]) == 2
        assert not server.requests
    assert "this is no path that can be requested" in capsys.readouterr().err
