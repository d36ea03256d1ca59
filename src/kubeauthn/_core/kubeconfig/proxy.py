"""Which proxy a request to a server goes through: Go's rules, so that kubectl and we agree.

The entry's `proxy-url` wins. Else the environment: HTTPS_PROXY or HTTP_PROXY by the
server's scheme, the upper case name first, and NO_PROXY. Never for loopback.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ENTRY_SCHEMES = ("http", "https", "socks5")
ENVIRONMENT_SCHEMES = ("http", "https", "socks5", "socks5h")


def split_url(url: str) -> SplitResult:
    """`urlsplit`, but it raises `ValueError` on what it would otherwise drop or only find later."""
    if not all(character.isprintable() and character != " " for character in url):
        raise ValueError("has white space or control characters")
    parts = urlsplit(url)
    _ = parts.port  # raises if it is not a port number
    return parts


def is_possible_host(host: str) -> bool:
    """Whether its parts have lengths that a name may have: what looks names up fails on others in its own ways."""
    if host.isascii():
        return all(0 < len(part) < 64 for part in host.removesuffix(".").split("."))
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def in_ascii(host: str) -> str:
    """As DNS has the name, and HTTP where it names a server. The host alone: a port behind it would be taken along."""
    return host if host.isascii() else host.encode("idna").decode()


def check_proxy_url(url: str, schemes: tuple[str, ...] = ENTRY_SCHEMES) -> None:
    """`ValueError` says what is wrong, without the address: it may hold a password."""
    try:
        parts = split_url(url)
    except ValueError:
        raise ValueError("not a URL") from None
    if parts.scheme not in schemes:
        shown = parts.scheme if "://" in url else ""
        raise ValueError(f'unsupported scheme "{shown}", must be http, https, or socks5')
    if not parts.hostname:
        raise ValueError("no host")
    if not is_possible_host(parts.hostname):
        raise ValueError("not a host name")


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> str:
    """The proxy that the environment names for `server`; empty if there is none. `ValueError` if it is not usable."""
    parts = split_url(server)
    variable = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = (environ.get(variable) or environ.get(variable.lower()) or "").strip()
    if not proxy:
        return ""
    host, port = parts.hostname or "", str(parts.port or (443 if parts.scheme == "https" else 80))
    if not _wants_proxy(host, port, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    if variable == "HTTP_PROXY" and environ.get("REQUEST_METHOD"):
        # In a CGI process anybody can set HTTP_PROXY: it is the request's `Proxy` header.
        raise ValueError("refusing to use HTTP_PROXY value in CGI environment")
    if "://" not in proxy:
        proxy = "http://" + proxy
    try:
        check_proxy_url(proxy, ENVIRONMENT_SCHEMES)
    except ValueError as fault:
        raise ValueError(f"{variable} in the environment: {fault}") from None
    return proxy


def _wants_proxy(host: str, port: str, no_proxy: str) -> bool:
    import ipaddress

    host = host.lower().rstrip(".")
    try:
        address: ipaddress.IPv4Address | ipaddress.IPv6Address | None = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if host == "localhost" or (address is not None and address.is_loopback):
        return False
    for entry in no_proxy.split(","):
        rule = entry.strip().lower()
        if rule == "*":
            return False
        if not rule:
            continue
        if "/" in rule:
            try:
                network = ipaddress.ip_network(rule, strict=False)
            except ValueError:
                continue
            if address is not None and address in network:
                return False
            continue
        wanted_host, wanted_port = _host_and_port(rule)
        if wanted_host and (not wanted_port or wanted_port == port) and _host_matches(host, wanted_host, address):
            return False
    return True


def _host_and_port(rule: str) -> tuple[str, str]:
    """`host`, `host:port`, `[v6]:port`, and an IPv6 address as it is."""
    if rule.startswith("["):
        host, _, port = rule[1:].partition("]")
        return host, port.removeprefix(":")
    if rule.count(":") == 1:
        host, _, port = rule.partition(":")
        return host, port
    return rule, ""


def _host_matches(host: str, wanted: str, address: object) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(wanted) == address
    except ValueError:
        pass
    wanted = wanted.removeprefix("*")
    if wanted.startswith("."):
        return host.endswith(wanted)
    return host == wanted or host.endswith("." + wanted)
