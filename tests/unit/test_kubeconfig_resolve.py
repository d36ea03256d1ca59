"""Which cluster, as whom. Texts are kubectl 1.32's where it has one."""

from __future__ import annotations

import json

import pytest

from kubeauthn._core.kubeconfig.decode import decode
from kubeauthn._core.kubeconfig.merge import in_cluster, is_empty, merge
from kubeauthn._core.kubeconfig.model import Impersonation, Kubeconfig, User
from kubeauthn._core.kubeconfig.resolve import Overrides, complete, select
from kubeauthn._secret import Secret
from kubeauthn.errors import KubeconfigError

PATH = "/k/config"
SERVER = {"server": "https://api.example.com:6443"}
V1 = "client.authentication.k8s.io/v1"


def config(*, cluster=None, user=None, context=None, **top) -> Kubeconfig:
    document = {
        "clusters": [{"name": "c", "cluster": SERVER if cluster is None else cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"} if context is None else context}],
        "current-context": "x",
        **top,
    }
    return decode(json.dumps(document), PATH)


def target(kubeconfig, overrides=None, files=None, environ=None):
    selection = select(kubeconfig, overrides or Overrides())
    assert set(selection.files) <= set(files or {})
    return complete(selection, files or {}, environ or {})


def messages(kubeconfig, overrides=None, files=None, environ=None):
    with pytest.raises(KubeconfigError) as caught:
        target(kubeconfig, overrides, files, environ)
    return [fault.message for fault in caught.value.faults] or [str(caught.value)]


def test_current_context():
    found = target(config(user={"token": "t"}, context={"cluster": "c", "user": "u", "namespace": "n"}))
    assert found.cluster.server == "https://api.example.com:6443"
    assert found.user.token.reveal() == "t"
    assert (found.namespace, found.context_name, found.cluster_name, found.user_name) == ("n", "x", "c", "u")


def test_files_are_read_and_inline_data_taken():
    found = target(
        config(
            cluster={**SERVER, "certificate-authority": "ca"}, user={"client-certificate": "crt", "client-key": "key"}
        ),
        files={"/k/ca": b"CA", "/k/crt": b"CRT", "/k/key": b"KEY"},
    )
    assert found.cluster.certificate_authority_data == b"CA"
    assert (found.user.client_certificate, found.user.client_key.reveal()) == (b"CRT", "KEY")
    found = target(
        config(
            cluster={**SERVER, "certificate-authority-data": "Q0E="},
            user={"client-certificate-data": "Q1JU", "client-key-data": "S0VZ"},
        )
    )
    assert found.cluster.certificate_authority_data == b"CA"
    assert (found.user.client_certificate, found.user.client_key.reveal()) == (b"CRT", "KEY")


def test_a_target_can_be_a_cache_key():
    user = {"token": "t", "exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Never"}}
    one, two = target(config(user=user)), target(config(user=user))
    assert hash(one.cluster) == hash(two.cluster)
    assert one.user == two.user
    assert hash(one.user) == hash(two.user)


def test_a_context_without_user_is_anonymous_because_nothing_was_configured():
    assert target(config(context={"cluster": "c"})).user == User()


NAMES = {
    "no current-context": (config(**{"current-context": ""}), Overrides(), "no current-context is set"),
    "current-context is gone": (
        config(**{"current-context": "gone"}),
        Overrides(),
        "context was not found for specified context: gone",
    ),
    "context asked for": (config(), Overrides(context="gone"), 'context "gone" does not exist'),
    "cluster is gone": (config(clusters=[]), Overrides(), 'cluster "c" was not found for context "x"'),
    "cluster asked for": (config(), Overrides(cluster="gone"), 'cluster "gone" does not exist'),
    "cluster not named": (config(context={"user": "u"}), Overrides(), 'cluster was not specified for context "x"'),
    "user is gone": (config(users=[]), Overrides(), 'user "u" was not found for context "x"'),
    "user asked for": (config(), Overrides(user="gone"), 'user "gone" does not exist'),
    "server override does not excuse a missing user": (
        config(users=[]),
        Overrides(server="https://other"),
        'user "u" was not found for context "x"',
    ),
    "token override does not excuse a missing user": (
        config(users=[]),
        Overrides(token=Secret("t")),
        'user "u" was not found for context "x"',
    ),
}


@pytest.mark.parametrize(("kubeconfig", "overrides", "message"), NAMES.values(), ids=list(NAMES))
def test_names_that_lead_nowhere(kubeconfig, overrides, message):
    assert messages(kubeconfig, overrides) == [message]


def test_cluster_and_user_both_missing_are_both_reported():
    assert messages(config(users=[], clusters=[])) == [
        'cluster "c" was not found for context "x"',
        'user "u" was not found for context "x"',
    ]


def test_a_name_from_the_caller_has_no_place_in_a_file():
    with pytest.raises(KubeconfigError) as caught:
        target(config(), Overrides(context="gone"))
    assert str(caught.value) == 'context "gone" does not exist'


@pytest.mark.parametrize(
    ("asked_for", "hint"), [("prdo", "did you mean prod? the"), ("zzz", "the"), ("p" * 9999, "the")]
)
def test_the_hint_names_a_context_that_is_near(asked_for: str, hint: str):
    contexts = [{"name": name, "context": {"cluster": "c"}} for name in ("prod", "staging", "prod" * 1000)]
    with pytest.raises(KubeconfigError) as caught:
        target(config(contexts=contexts), Overrides(context=asked_for))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"{hint} contexts are: prod, ")


def test_the_hint_lists_contexts():
    with pytest.raises(KubeconfigError) as caught:
        target(config(contexts=[{"name": f"c{index:02}"} for index in range(25)], **{"current-context": ""}))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("the contexts are: c00, c01")
    assert caught.value.hint.endswith("c19 and 5 more")
    with pytest.raises(KubeconfigError) as caught:
        target(Kubeconfig())
    assert caught.value.hint == "the kubeconfig has no contexts"


def test_overrides():
    kubeconfig = decode(
        json.dumps(
            {
                "clusters": [
                    {"name": "a", "cluster": {"server": "https://a", "tls-server-name": "a"}},
                    {"name": "b", "cluster": {"server": "https://b"}},
                ],
                "users": [
                    {"name": "a", "user": {"tokenFile": "/t", "as": "someone"}},
                    {"name": "b", "user": {"token": "b"}},
                ],
                "contexts": [
                    {"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "a"}},
                    {"name": "b", "context": {"cluster": "b", "user": "b"}},
                ],
                "current-context": "a",
            }
        )
    )
    assert target(kubeconfig, Overrides(context="b")).cluster.server == "https://b"
    assert target(kubeconfig, Overrides(cluster="b")).cluster.server == "https://b"
    assert target(kubeconfig, Overrides(cluster="b")).user.token_file == "/t"
    assert target(kubeconfig, Overrides(user="b")).user.token.reveal() == "b"
    assert target(kubeconfig, Overrides(namespace="z")).namespace == "z"
    elsewhere = target(kubeconfig, Overrides(server="https://z"))
    assert (elsewhere.cluster.server, elsewhere.cluster.tls_server_name) == ("https://z", "")
    assert target(kubeconfig, Overrides(server="https://z", tls_server_name="n")).cluster.tls_server_name == "n"
    other = target(kubeconfig, Overrides(token=Secret("z"))).user
    assert (other.token.reveal(), other.token_file) == ("z", "")
    wanted = Impersonation(user="q", groups=("g",))
    assert target(kubeconfig, Overrides(impersonation=wanted)).user.impersonation == wanted
    assert target(kubeconfig).user.impersonation.user == "someone"


def test_cluster_and_user_may_be_named_without_any_context():
    kubeconfig = config(user={"token": "t"}, **{"current-context": ""})
    found = target(kubeconfig, Overrides(cluster="c", user="u"))
    assert (found.context_name, found.user.token.reveal()) == ("", "t")
    assert target(Kubeconfig(), Overrides(server="https://z", token=Secret("t"))).cluster.server == "https://z"


CLUSTERS = {
    "no server": ({}, ['no server found for cluster "c"']),
    "server without scheme": ({"server": "host:6443"}, ["server has no scheme: write https:// before it"]),
    "server of another scheme": ({"server": "ftp://h"}, ["server must be an http or https URL with a host"]),
    "server without host": ({"server": "https://"}, ["server must be an http or https URL with a host"]),
    "server with line break": ({"server": "https://h\nX: y"}, ["server is not a URL"]),
    "host with an empty part": ({"server": "https://a..b"}, ["server has a host that is not a host name"]),
    "host with a long part": ({"server": f"https://{'x' * 64}.test"}, ["server has a host that is not a host name"]),
    "host of another script": ({"server": "https://mün..test"}, ["server has a host that is not a host name"]),
    "proxy whose host is none": (
        {**SERVER, "proxy-url": "http://u:s3cret@a..b:1"},
        ["invalid 'proxy-url' for cluster \"c\": not a host name"],
    ),
    "name with an empty part": ({**SERVER, "tls-server-name": "a..b"}, ["is not a host name"]),
    "server with bad port": ({"server": "https://h:99999"}, ["server is not a URL"]),
    "server with password": ({"server": "https://a:b@h"}, ["server must not contain a user or password"]),
    "server with query": ({"server": "https://h/?a=b"}, ["server must not have a query or a fragment"]),
    "insecure with CA data": (
        {**SERVER, "insecure-skip-tls-verify": True, "certificate-authority-data": "Q0E="},
        ["specifying a root certificates file with the insecure flag is not allowed"],
    ),
    "CA twice": (
        {**SERVER, "certificate-authority": "ca", "certificate-authority-data": "Q0E="},
        ["certificate-authority-data and certificate-authority are both specified for c"],
    ),
    "proxy of another scheme": (
        {**SERVER, "proxy-url": "ftp://me:hunter2@p"},
        ["invalid 'proxy-url' for cluster \"c\": unsupported scheme \"ftp\", must be http, https, or socks5"],
    ),
    "proxy without scheme": (
        {**SERVER, "proxy-url": "hunter2:3128"},
        ["invalid 'proxy-url' for cluster \"c\": unsupported scheme \"\", must be http, https, or socks5"],
    ),
    "proxy without host": ({**SERVER, "proxy-url": "http://"}, ["invalid 'proxy-url' for cluster \"c\": no host"]),
    "proxy that is no URL": (
        {**SERVER, "proxy-url": "http://me:hunter2@[p"},
        ["invalid 'proxy-url' for cluster \"c\": not a URL"],
    ),
    "everything": (
        {"server": "x", "proxy-url": "y", "tls-server-name": "a\n"},
        [
            "server has no scheme: write https:// before it",
            "invalid 'proxy-url' for cluster \"c\": unsupported scheme \"\", must be http, https, or socks5",
            "has control characters",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("cluster", "expected"), CLUSTERS.values(), ids=list(CLUSTERS))
def test_cluster_faults(cluster, expected):
    found = messages(config(cluster=cluster), files={"/k/ca": b"CA"})
    assert found == expected
    assert "hunter2" not in "".join(found)


def test_server_without_scheme_is_https_where_tls_is_configured():
    found = target(config(cluster={"server": "host:6443", "certificate-authority-data": "Q0E="}))
    assert found.cluster.server == "https://host:6443"


def plugin(**fields):
    return {"exec": {"apiVersion": V1, "command": "p", "interactiveMode": "Never", **fields}}


USERS = {
    "token and password": (
        {"token": "t", "username": "n", "password": "p"},
        ["more than one authentication method found for u; found [token basicAuth], only one is allowed"],
    ),
    "certificate without key": (
        {"client-certificate-data": "Q1JU"},
        ["client-key-data or client-key must be specified for u to use the clientCert authentication method"],
    ),
    "key without certificate": (
        {"client-key-data": "S0VZ"},
        [
            "client-certificate-data or client-certificate must be specified for u "
            "to use the clientCert authentication method"
        ],
    ),
    "certificate and key twice": (
        {
            "client-certificate-data": "Q1JU",
            "client-certificate": "/crt",
            "client-key": "/key",
            "client-key-data": "S0VZ",
        },
        [
            "client-cert-data and client-cert are both specified for u",
            "client-key-data and client-key are both specified for u",
        ],
    ),
    "key that is not text": (
        {"client-certificate": "/crt", "client-key": "/binary"},
        ["client-key /binary is not text (PEM was expected)"],
    ),
    "groups without user": (
        {"as-groups": ["g"]},
        ["requesting uid, groups or user-extra for u without impersonating a user"],
    ),
    "line break in impersonation": (
        {"as": "a", "as-user-extra": {"k": ["v\r\nX-Remote-User: root"]}},
        ["what is to be impersonated has control characters"],
    ),
    "nobody left to impersonate": (
        {"as": " "},
        ["what is to be impersonated begins or ends with a blank, which no header keeps"],
    ),
    "blank at the end of a group": (
        {"as": "a", "as-groups": ["admins "]},
        ["what is to be impersonated begins or ends with a blank, which no header keeps"],
    ),
    "line break in token": ({"token": "t\n"}, ["has control characters, such as a line break"]),
    "empty exec, with auth-provider": (
        {"exec": {"env": [{"value": "x"}]}, "auth-provider": {"name": "gcp"}},
        [
            "authProvider cannot be provided in combination with an exec plugin for u",
            "command must be specified for u to use exec authentication plugin",
            "apiVersion must be specified for u to use exec authentication plugin",
            "env variable name must be specified for u to use exec authentication plugin",
            "interactiveMode must be specified for u to use exec authentication plugin",
        ],
    ),
    "v1 without interactiveMode": (
        plugin(interactiveMode=None),
        ["interactiveMode must be specified for u to use exec authentication plugin"],
    ),
    "interactiveMode unknown": (plugin(interactiveMode="Foo"), ['invalid interactiveMode for u: "Foo"']),
    "apiVersion unknown": (plugin(apiVersion="foo/v1"), ['exec plugin: invalid apiVersion "foo/v1"']),
    "NUL in arguments": (plugin(args=["a\0b"]), ["command and args must not contain a NUL character"]),
    "NUL in environment": (
        plugin(env=[{"name": "A", "value": "a\0b"}, {"name": "B=C", "value": ""}]),
        ["a variable has a name or value that no environment can hold"] * 2,
    ),
    "auth-provider without name": (
        {"auth-provider": {}},
        ["name must be specified for u to use an auth provider"],
    ),
}


def test_what_an_override_says_is_no_fault_of_a_file():
    with pytest.raises(KubeconfigError) as caught:
        target(config(), Overrides(server="x", tls_server_name="a\n"))
    assert str(caught.value).splitlines() == [
        "server: server has no scheme: write https:// before it",
        "tls-server-name: has control characters",
    ]


@pytest.mark.parametrize(("user", "expected"), USERS.values(), ids=list(USERS))
def test_user_faults(user, expected):
    files = {"/crt": b"CRT", "/key": b"KEY", "/binary": b"\xff"}
    assert messages(config(user=user), files=files) == expected


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_exec_versions(version):
    user = plugin(apiVersion=f"client.authentication.k8s.io/{version}")
    assert target(config(user=user)).user.exec is not None


def test_unreadable_files_and_other_faults_come_together():
    kubeconfig = config(
        cluster={"certificate-authority": "ca"}, user={"client-certificate": "crt", "client-key": "key", "token": "\n"}
    )
    assert messages(
        kubeconfig, files={"/k/ca": "no such file or directory", "/k/crt": "is a directory", "/k/key": b""}
    ) == [
        'no server found for cluster "c"',
        "unable to read certificate-authority /k/ca for c due to no such file or directory",
        "unable to read client-cert /k/crt for u due to is a directory",
        "has control characters, such as a line break",
    ]


def test_faults_name_file_and_entry():
    with pytest.raises(KubeconfigError) as caught:
        target(config(user={"exec": {"apiVersion": V1, "interactiveMode": "Never"}}))
    assert str(caught.value) == (
        '/k/config: users["u"].user.exec.command: command must be specified for u to use exec authentication plugin'
    )


def test_other_entries_may_be_broken():
    broken = {"name": "broken", "user": {"exec": {}, "auth-provider": {}}}
    fine = {"name": "u", "user": {"token": "t"}}
    assert target(config(users=[broken, fine])).user.token.reveal() == "t"


def test_token_and_token_file_are_both_kept():
    user = target(config(user={"token": "t", "tokenFile": "/t"})).user
    assert (user.token.reveal(), user.token_file) == ("t", "/t")


def test_merge_first_entry_wins_whole():
    one = decode("clusters: [{name: a, cluster: {server: https://1}}]\nusers: [{name: u, user: {token: one}}]", "/1/c")
    two = decode(
        "clusters: [{name: a, cluster: {server: https://2, tls-server-name: two}}, "
        "{name: b, cluster: {server: https://2, certificate-authority: ca}}]\n"
        "users: [{name: u, user: {token: two, username: two}}]\ncurrent-context: two",
        "/2/c",
    )
    three = decode("current-context: three", "/3/c")
    merged = merge([one, two, three])
    assert merged.clusters["a"] == one.clusters["a"]
    assert merged.clusters["b"].certificate_authority == "/2/ca"
    assert merged.users["u"].username == ""
    assert merged.current_context == "two"
    assert merged.current_context_origin.path == "/2/c"
    assert not is_empty(merged)
    assert is_empty(merge([]))


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("[fd00::1]", "https://[fd00::1]:443"),
        ("kubernetes.default", "https://kubernetes.default:443"),
    ],
)
def test_in_cluster(host, server):
    kubeconfig = in_cluster(host, "443", token_file="/sa/token", ca_file="/sa/ca.crt", namespace="mine")
    found = target(kubeconfig, files={"/sa/ca.crt": b"CA"})
    assert found.cluster.server == server
    assert found.cluster.certificate_authority_data == b"CA"
    assert found.user == User(token_file="/sa/token")
    assert found.namespace == "mine"


# -- the proxy in effect --------------------------------------------------------------------------

ALL = {"HTTPS_PROXY": "http://secure:1", "HTTP_PROXY": "http://plain:1"}
PROXIES = {
    "https server": ("https://h", ALL, "http://secure:1"),
    "http server": ("http://h", ALL, "http://plain:1"),
    "https server ignores HTTP_PROXY": ("https://h", {"HTTP_PROXY": "http://plain:1"}, ""),
    "lower case": ("https://h", {"https_proxy": "http://lower:1"}, "http://lower:1"),
    "upper case first": ("https://h", {**ALL, "https_proxy": "http://lower:1"}, "http://secure:1"),
    "no scheme": ("https://h", {"HTTPS_PROXY": "p:3128"}, "http://p:3128"),
    "socks5h": ("https://h", {"HTTPS_PROXY": "socks5h://p"}, "socks5h://p"),
    "empty": ("https://h", {"HTTPS_PROXY": ""}, ""),
    "localhost": ("https://localhost:6443", ALL, ""),
    "loopback": ("https://127.1.2.3:6443", ALL, ""),
    "loopback v6": ("https://[::1]:6443", ALL, ""),
    "loopback mapped": ("https://[::ffff:127.0.0.1]:6443", ALL, ""),
    "NO_PROXY star": ("https://h", {**ALL, "NO_PROXY": "x, *"}, ""),
    "NO_PROXY host": ("https://a.example.com", {**ALL, "NO_PROXY": "example.com"}, ""),
    "NO_PROXY host itself": ("https://example.com", {**ALL, "no_proxy": "EXAMPLE.com"}, ""),
    "NO_PROXY dot leaves the host itself out": ("https://example.com", {**ALL, "NO_PROXY": ".example.com"}, "http://secure:1"),
    "NO_PROXY dot": ("https://a.example.com", {**ALL, "NO_PROXY": ".example.com"}, ""),
    "NO_PROXY star dot": ("https://a.example.com", {**ALL, "NO_PROXY": "*.example.com"}, ""),
    "NO_PROXY not a suffix of a label": ("https://badexample.com", {**ALL, "NO_PROXY": "example.com"}, "http://secure:1"),
    "NO_PROXY port": ("https://h:6443", {**ALL, "NO_PROXY": "h:6443"}, ""),
    "NO_PROXY default port": ("https://h", {**ALL, "NO_PROXY": "h:443"}, ""),
    "NO_PROXY other port": ("https://h:6443", {**ALL, "NO_PROXY": "h:443"}, "http://secure:1"),
    "NO_PROXY address": ("https://10.1.2.3", {**ALL, "NO_PROXY": "10.1.2.3"}, ""),
    "NO_PROXY v6": ("https://[fd00::1]:6443", {**ALL, "NO_PROXY": "[fd00:0::1]:6443"}, ""),
    "NO_PROXY v6 bare": ("https://[fd00::1]:6443", {**ALL, "NO_PROXY": "fd00::1"}, ""),
    "NO_PROXY CIDR": ("https://10.1.2.3", {**ALL, "NO_PROXY": ",,10.0.0.0/8"}, ""),
    "NO_PROXY other CIDR": ("https://10.1.2.3", {**ALL, "NO_PROXY": "11.0.0.0/8,x/y,fd00::/8"}, "http://secure:1"),
    "CGI takes no HTTPS_PROXY harm": ("https://h", {**ALL, "REQUEST_METHOD": "GET"}, "http://secure:1"),
}  # fmt: skip


@pytest.mark.parametrize(("server", "environ", "proxy"), PROXIES.values(), ids=list(PROXIES))
def test_proxy_from_the_environment(server, environ, proxy):
    assert target(config(cluster={"server": server}), environ=environ).cluster.proxy_url == proxy


def test_the_entrys_proxy_wins_even_for_loopback():
    cluster = {"server": "https://127.0.0.1", "proxy-url": "socks5://mine:1"}
    assert target(config(cluster=cluster), environ=ALL).cluster.proxy_url == "socks5://mine:1"


@pytest.mark.parametrize(
    ("server", "environ", "message"),
    [
        ("http://h", {"HTTP_PROXY": "http://p", "REQUEST_METHOD": "GET"},
         "refusing to use HTTP_PROXY value in CGI environment"),
        ("https://h", {"HTTPS_PROXY": "ftp://me:hunter2@p"},
         'HTTPS_PROXY in the environment: unsupported scheme "ftp", must be http, https, or socks5'),
    ],
)  # fmt: skip
def test_an_unusable_proxy_in_the_environment_is_an_error(server, environ, message):
    assert messages(config(cluster={"server": server}), environ=environ) == [message]
