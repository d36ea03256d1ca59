"""`kubeauthn plugin eks`: the token taken apart, its signature checked by other code, and asked of moto's STS."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import boto3
import pytest
import requests
from moto import mock_aws
from moto.sts.models import sts_backends

from kubeauthn._core import execwire, rfc3339
from kubeauthn.errors import CredentialError, UsageError
from kubeauthn.plugins.eks import Settings, make_token
from kubeauthn.testing import ApiServer

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def cloud() -> Iterator[None]:
    with mock_aws():
        yield


def opened(token: str) -> str:
    """The address in a token. EKS refuses one with padding."""
    assert token.startswith("k8s-aws-v1.")
    encoded = token.removeprefix("k8s-aws-v1.")
    assert "=" not in encoded
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def verify(address: str, cluster: str, secret: str = SECRET) -> bool:
    """Signature Version 4 in a query, as its documentation tells it, step by step."""
    parts = urlsplit(address)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    fields = dict(pairs)
    assert len(fields) == len(pairs)
    _, date, region, service, end = fields["X-Amz-Credential"].split("/")
    assert (fields["X-Amz-Algorithm"], service, end) == ("AWS4-HMAC-SHA256", "sts", "aws4_request")
    headers = {"host": parts.netloc, "x-k8s-aws-id": cluster}
    signed = fields["X-Amz-SignedHeaders"].split(";")
    query = sorted((quote(k, "-_.~"), quote(v, "-_.~")) for k, v in pairs if k != "X-Amz-Signature")
    canonical = "\n".join(
        [
            "GET",
            parts.path,
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{headers[name]}" for name in signed),
            "",
            ";".join(signed),
            hashlib.sha256(b"").hexdigest(),
        ]
    )
    scope = f"{date}/{region}/sts/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", fields["X-Amz-Date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    derived = f"AWS4{secret}".encode()
    for step in (date, region, "sts", "aws4_request"):
        derived = hmac.new(derived, step.encode(), hashlib.sha256).digest()
    return hmac.new(derived, text.encode(), hashlib.sha256).hexdigest() == fields["X-Amz-Signature"]


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None)
    return subprocess.run(
        [KUBEAUTHN, "plugin", "eks", *words], env={**os.environ, execwire.VARIABLE: info, **more},
        capture_output=True, text=True, timeout=50,
    )  # fmt: skip


def test_the_token_is_a_signed_question_about_the_caller():
    done = run("--cluster-name=prod", "--region=eu-west-1")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)["status"]
    assert 830 < rfc3339.parse(status["expirationTimestamp"]) - time.time() <= 840
    address = opened(status["token"])
    parts, fields = urlsplit(address), dict(parse_qsl(urlsplit(address).query))
    assert (parts.scheme, parts.netloc, parts.path) == ("https", "sts.eu-west-1.amazonaws.com", "/")
    assert (fields["Action"], fields["Version"], fields["X-Amz-Expires"]) == ("GetCallerIdentity", "2011-06-15", "60")
    assert fields["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert fields["X-Amz-Credential"].startswith(f"{KEY}/")
    assert verify(address, "prod")
    assert not verify(address, "staging")
    assert not verify(address.replace("GetCallerIdentity", "GetSessionToken"), "prod")


def test_it_is_what_the_aws_command_line_makes(monkeypatch: pytest.MonkeyPatch):
    """The same question, asked by botocore's own way to presign with the header put in, gives the same address."""
    from botocore.session import Session

    token, _ = make_token(Settings("prod", region="eu-west-1"))
    ours = dict(parse_qsl(urlsplit(opened(token)).query))
    client = Session().create_client("sts", region_name="eu-west-1")
    client.meta.events.register(
        "before-sign.sts.GetCallerIdentity", lambda request, **_: request.headers.add_header("x-k8s-aws-id", "prod")
    )
    theirs = dict(
        parse_qsl(urlsplit(client.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")).query)
    )
    moving = ("X-Amz-Date", "X-Amz-Signature")
    assert {k: v for k, v in ours.items() if k not in moving} == {k: v for k, v in theirs.items() if k not in moving}


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east-1", "sts.us-east-1.amazonaws.com"),
        ("cn-north-1", "sts.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "sts.us-gov-west-1.amazonaws.com"),
    ],
)
def test_each_partition_has_its_own_sts(region: str, host: str):
    address = opened(make_token(Settings("prod", region=region))[0])
    assert urlsplit(address).netloc == host
    assert verify(address, "prod")


def test_session_credentials_are_named_and_signed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "the/session+token==")
    address = opened(make_token(Settings("prod", region="eu-west-1"))[0])
    assert dict(parse_qsl(urlsplit(address).query))["X-Amz-Security-Token"] == "the/session+token=="
    assert verify(address, "prod")


def test_a_profile_of_the_configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    file = tmp_path / "config"
    file.write_text(
        f"[profile work]\nregion = eu-central-1\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    address = opened(make_token(Settings("prod", profile="work"))[0])
    assert urlsplit(address).netloc == "sts.eu-central-1.amazonaws.com"
    assert verify(address, "prod")


def test_an_endpoint_of_ones_own():
    endpoint = "https://vpce-1.sts.eu-west-1.vpce.amazonaws.com"
    address = opened(make_token(Settings("prod", region="eu-west-1", endpoint_url=f"{endpoint}/"))[0])
    assert address.startswith(f"{endpoint}/?")
    assert verify(address, "prod")


def test_sts_answers_who_the_caller_is(cloud: None):
    address = opened(make_token(Settings("prod", region="eu-west-1"))[0])
    answer = requests.get(address, headers={"x-k8s-aws-id": "prod"}, timeout=20)
    assert answer.status_code == 200
    assert "<GetCallerIdentityResponse" in answer.text


def test_a_role_is_taken_on(cloud: None):
    iam = boto3.client("iam", region_name="eu-west-1")
    role = iam.create_role(RoleName="admin", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    token, seconds = make_token(Settings("prod", region="eu-west-1", role_arn=role, session_name="jane"))
    fields = dict(parse_qsl(urlsplit(opened(token)).query))
    assert not fields["X-Amz-Credential"].startswith(KEY)
    assert fields["X-Amz-Security-Token"]
    assert seconds == 840.0
    # moto reads the caller from a header alone, so it is asked whose key signed.
    key = fields["X-Amz-Credential"].partition("/")[0]
    taken = sts_backends[role.split(":")[4]]["aws"].get_assumed_role_from_access_key(key)
    assert taken is not None
    assert (taken.role_arn, taken.session_name) == (role, "jane")
    assert verify(opened(token), "prod", taken.secret_access_key)


def test_a_token_does_not_outlive_what_signed_it(cloud: None, monkeypatch: pytest.MonkeyPatch):
    import datetime

    from botocore.credentials import RefreshableCredentials
    from botocore.session import Session

    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
    short = RefreshableCredentials(KEY, SECRET, "t", ends, lambda: {}, "test", advisory_timeout=0, mandatory_timeout=0)
    monkeypatch.setattr(Session, "get_credentials", lambda self: short)
    _, seconds = make_token(Settings("prod", region="eu-west-1"))
    assert 280 < seconds <= 300


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings("", region="eu-west-1"), "--cluster-name takes"),
        (Settings("a b", region="eu-west-1"), "--cluster-name takes"),
        (Settings("a\r\nX: y", region="eu-west-1"), "--cluster-name takes"),
        (Settings("prod"), "no region is named"),
        (Settings("prod", region="eu-west-1", role_arn="admin"), "--role-arn takes an ARN"),
        (Settings("prod", region="eu-west-1", endpoint_url="http://sts.example"), "--endpoint-url takes an https"),
    ],
)
def test_what_is_wrong_is_named(settings: Settings, said: str):
    with pytest.raises(UsageError, match=said):
        make_token(settings)


def test_without_credentials_nothing_is_made(tmp_path: Path):
    empty = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": str(tmp_path / "none"),
             "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}  # fmt: skip
    done = run("--cluster-name=prod", "--region=eu-west-1", **empty)
    assert (done.returncode, done.stdout) == (1, "")
    assert "AWS credentials" in done.stderr or "nothing to sign with" in done.stderr
    with pytest.raises(CredentialError, match="ProfileNotFound"):
        make_token(Settings("prod", region="eu-west-1", profile="no-such"))


@pytest.mark.parametrize(
    ("variables", "region"),
    [
        ({"AWS_REGION": "eu-north-1"}, "eu-north-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-3"),
        ({"AWS_REGION": "eu-north-1", "AWS_DEFAULT_REGION": "eu-west-3"}, "eu-north-1"),
    ],
)
def test_the_region_of_the_environment(variables: dict[str, str], region: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    token, _ = make_token(Settings("prod"))
    assert urlsplit(opened(token)).netloc == f"sts.{region}.amazonaws.com"


REFUSED = b"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>InvalidIdentityToken</Code><Message>s3cret</Message></Error><RequestId>1</RequestId></ErrorResponse>"""


class RefusingSts(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(REFUSED)))
        self.end_headers()
        self.wfile.write(REFUSED)

    def log_message(self, *args: object) -> None:
        """Nothing to say."""


def test_a_web_identity_that_aws_refuses_is_named_by_its_code(tmp_path: Path):
    """As in a pod with a role of its own, or in a pipeline: the role is taken on when its credentials are needed."""
    (tmp_path / "token").write_text("a.web.identity")
    with ThreadingHTTPServer(("127.0.0.1", 0), RefusingSts) as sts:
        threading.Thread(target=sts.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        pod = {
            "AWS_ACCESS_KEY_ID": "",
            "AWS_SECRET_ACCESS_KEY": "",
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/deployer",
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{sts.server_address[1]}",
        }
        done = run("--cluster-name=prod", "--region=eu-west-1", **pod)
        sts.shutdown()
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: AWS refused the credentials that were to sign: InvalidIdentityToken" in done.stderr
    assert "s3cret" not in done.stderr


def test_without_botocore_the_extra_is_named():
    program = (
        "import sys; sys.modules['botocore.auth'] = None\n"
        "from kubeauthn.plugins.eks import Settings, make_token\nmake_token(Settings('prod', region='x'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert "botocore is not installed: pip install 'kubeauthn[aws]'" in done.stderr


@pytest.mark.needs("kubectl")
def test_kubectl_with_the_cache_before_it(tmp_path: Path):
    """The token changes from run to run; kept, it is one token for many commands."""
    words = ["plugin", "cache", "--", KUBEAUTHN, "plugin", "eks", "--cluster-name=prod", "--region=eu-west-1"]
    info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None)
    environ = {**os.environ, execwire.VARIABLE: info}
    first = subprocess.run([KUBEAUTHN, *words], env=environ, capture_output=True, text=True, timeout=50)
    assert first.returncode == 0, first.stderr
    token = json.loads(first.stdout)["status"]["token"]
    entry = {"apiVersion": execwire.V1, "command": KUBEAUTHN, "args": words, "interactiveMode": "Never"}
    with ApiServer(tokens={token: "arn:aws:iam::1:user/jane"}) as server:
        config = server.write_kubeconfig(tmp_path / "config", {"exec": entry})
        listed = subprocess.run(
            ["kubectl", "--kubeconfig", str(config), "get", "--raw", "/api/v1/namespaces"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50,
        )  # fmt: skip
        assert listed.returncode == 0, listed.stderr
