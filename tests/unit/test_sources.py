"""Which credential wins, and what a file of tokens does."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster, ExecConfig, Impersonation, User
from kubeauthn._core.record import replace
from kubeauthn._secret import Secret
from kubeauthn.client.exec_source import ExecOptions
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.client.sources import FixedSource, TokenFileSource, source_for
from kubeauthn.errors import AuthProviderError, KubeconfigError, StaticCredentialError
from kubeauthn.testing.clock import FakeClock
from kubeauthn.testing.pki import CertificateAuthority

CLUSTER = Cluster(server="https://127.0.0.1:6443")
EXEC = ExecConfig("/nowhere/plugin", "client.authentication.k8s.io/v1", interactive_mode="Never")
LEAF = CertificateAuthority().issue_client("jane")
CERTIFICATE = User(client_certificate=LEAF.certificate_pem, client_key=Secret(LEAF.key_pem.decode()))


def source(user: User, cluster: Cluster = CLUSTER) -> object:
    return source_for(user, cluster, ExecOptions())


@pytest.mark.parametrize(
    ("user", "header"),
    [
        (User(token=Secret("t"), exec=EXEC), "Bearer t"),
        (User(username="jane", password=Secret("p:w"), exec=EXEC), "Basic amFuZTpwOnc="),
        (replace(CERTIFICATE, exec=EXEC), None),
    ],
)
def test_static_credentials_win_over_the_plugin(user: User, header: str | None) -> None:
    found = source(user)
    assert isinstance(found, FixedSource)
    credential = found.get()
    assert (credential.authorization.reveal() if credential.authorization else None) == header
    assert (credential.identity is not None) is (header is None)


def test_token_and_certificate_are_both_used() -> None:
    credential = source(replace(CERTIFICATE, token=Secret("t"))).get()  # type: ignore[attr-defined]
    assert credential.authorization
    assert credential.identity


def test_a_plugin_where_nothing_is_static() -> None:
    assert isinstance(source(User(exec=EXEC)), RefreshedSource)


def test_nothing_configured_is_anonymous_and_says_so() -> None:
    assert "anonymous" in repr(source(User()).get())  # type: ignore[attr-defined]


@pytest.mark.parametrize("user", [User(token=Secret("t")), User(exec=EXEC), CERTIFICATE, User(token_file="/t")])
def test_credentials_are_not_sent_over_plain_http(user: User) -> None:
    with pytest.raises(KubeconfigError, match="server of the cluster entry: http://127.0.0.1:8001 is not https"):
        source(user, Cluster(server="http://127.0.0.1:8001"))


def test_plain_http_without_credentials_is_fine() -> None:
    source(User(impersonation=Impersonation(user="jane")), Cluster(server="http://127.0.0.1:8001"))


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("gcp", "the gcp auth-provider was removed", "gke-gcloud-auth-plugin"),
        ("azure", "the azure auth-provider was removed", "kubelogin"),
        ("keystone", 'no auth-provider named "keystone" is known', None),
        ("", 'no auth-provider named "" is known', None),
    ],
)
def test_other_auth_providers_are_an_error_never_an_anonymous_request(name: str, text: str, hint: str | None) -> None:
    with pytest.raises(AuthProviderError, match=text) as caught:
        source(User(auth_provider=AuthProvider(name)))
    assert hint is None or hint in str(caught.value.hint)


def test_a_certificate_whose_key_does_not_fit() -> None:
    other = CertificateAuthority().issue_client("joe")
    with pytest.raises(StaticCredentialError, match="does not match"):
        source(replace(CERTIFICATE, client_key=Secret(other.key_pem.decode())))


def test_a_token_that_would_break_the_header() -> None:
    with pytest.raises(StaticCredentialError) as caught:
        source(User(token=Secret("t\r\nX-Evil: 1")))
    assert "Evil" not in str(caught.value)


# -- a token file ---------------------------------------------------------------------------------


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def token_of(source: TokenFileSource) -> str:
    token = source.get().token
    assert token is not None
    return token.reveal()


def test_read_again_after_a_minute(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    source = TokenFileSource(str(path), fallback=Secret(""), clock=clock)
    first = source.get()
    path.write_text("two\n")
    clock.advance(59)
    assert source.get() is first
    clock.advance(2)
    assert token_of(source) == "two"


def test_the_same_token_again_is_the_same_credential(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = TokenFileSource(str(path), fallback=Secret(""), clock=clock)
    first = source.get()
    clock.advance(61)
    assert source.get() is first


def test_a_refused_token_is_looked_for_at_once(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = TokenFileSource(str(path), fallback=Secret(""), clock=clock)
    first = source.get()
    path.write_text("two")
    source.refused(first)
    assert token_of(source) == "two"


def test_the_last_good_token_stays_while_the_file_is_away(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = TokenFileSource(str(path), fallback=Secret(""), clock=clock)
    source.get()
    path.unlink()
    clock.advance(61)
    assert token_of(source) == "one"
    path.write_text("two")
    assert token_of(source) == "two"


def test_no_file_and_no_token_is_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(StaticCredentialError) as caught:
        TokenFileSource(path, fallback=Secret("")).get()
    assert str(caught.value) == f"tokenFile {path}: no such file or directory"


def test_no_file_but_a_token_beside_it(tmp_path: Path) -> None:
    assert token_of(TokenFileSource(str(tmp_path / "none"), fallback=Secret("beside"))) == "beside"


@pytest.mark.parametrize("content", [b"", b" \n", b"a\nb", b"\xff", "ünï".encode(), b"x" * (2 << 20)])
def test_a_file_that_holds_no_token(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(StaticCredentialError):
        TokenFileSource(str(path), fallback=Secret("")).get()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # said since Python 3.12
def test_a_child_forked_while_the_file_is_read_is_not_stuck(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    source = TokenFileSource(str(path), fallback=Secret(""))
    with source._lock:  # the worst moment: some thread holds the lock
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)  # one that is stuck ends by this
            try:
                os._exit(0 if token_of(source) == "one" else 1)
            finally:
                os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_a_file_that_is_not_text_is_not_quoted_by_what_the_error_carries(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"SECRET\xff")
    with pytest.raises(StaticCredentialError, match="holds no usable token") as caught:
        TokenFileSource(str(tmp_path / "token"), fallback=Secret("")).get()
    assert caught.value.__context__ is None
