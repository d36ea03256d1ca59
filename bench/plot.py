"""The plot of the results, as SVG, with nothing but text formatting: bars of how many times as fast as its peer.

A picture in a README follows neither the page's style sheet nor its scripts, so the colours for light and dark are in
the file itself. Each bar starts at "as fast as the peer"; the scale is logarithmic, so twice and half look alike. How
well a row's ratio is known is a line through the end of its bar, its goal a mark across. A bar to the left is no fault
where the peer is a floor, such as the signature check alone: only a missed goal has the colour of a warning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

Result = Mapping[str, Any]

GROUPS = (
    (
        "A token, checked",
        (
            ("authenticate: RS256", "kube-apiserver's code", "RS256"),
            ("authenticate: PS256", "kube-apiserver's code", "PS256"),
            ("authenticate: ES256", "kube-apiserver's code", "ES256"),
            ("authenticate: RS256, plain mappings", "kube-apiserver's code", "RS256, plain mappings"),
            ("authenticate: RS256, 200 groups", "kube-apiserver's code", "RS256, 200 groups"),
            ("authenticate: RS256", "PyJWT, without CEL", "RS256"),
            ("authenticate: RS256", "joserfc, without CEL", "RS256"),
            ("authenticate: RS256", "Authlib, without CEL", "RS256"),
            ("authenticate: RS256", "cryptography's bare check", "RS256"),
        ),
    ),
    (
        "CEL",
        (
            ("cel: the six expressions, claims from JSON", "cel-go in Kubernetes", "six expressions"),
            ("cel: 6 of the six expressions", "cel-expr-python", "six expressions"),
            ("cel: 4 of the six expressions", "common-expression-language", "four expressions"),
        ),
    ),
    (
        "A configuration, read and checked",
        (("configuration: 64 issuers, read and checked", "kube-apiserver's code", "64 issuers"),),
    ),
    (
        "The webhook, 2 workers",
        (
            ("webhook: 2 workers, every token new", "Go webhook", "every token new"),
            ("webhook: 2 workers, 1,000 tokens again and again", "Go webhook with cache", "known tokens"),
            ("webhook: 2 workers, 1,000 tokens again and again", "bare Granian", "known tokens"),
        ),
    ),
    (
        "A credential for a request",
        (
            ("credential, cached, put into a request", "client-go", "at hand"),
            ("credential, one run of the plugin", "client-go", "with a run of its plugin"),
        ),
    ),
    (
        "The exec proxy",
        (
            ("requests a second through a proxy, 1 connection", "kubectl proxy", "1 connection"),
            ("requests a second through a proxy, 16 connections", "kubectl proxy", "16 connections"),
            ("requests a second through a proxy, 64 connections", "kubectl proxy", "64 connections"),
            ("1024 MiB down", "kubectl proxy", "1 GiB down"),
        ),
    ),
    (
        "A TLS handshake, the key outside",
        (
            ("signer: handshake, RSA-2048 outside, all of it", "the same key in memory", "RSA-2048"),
            ("signer: handshake, P-256 outside, all of it", "the same key in memory", "P-256"),
        ),
    ),
    (
        "Start-up",
        (
            ("start-up: a plugin written with the SDK", "python -c pass", "a plugin with the SDK"),
            ("start-up: kubeauthn credential --help", "kubectl --help", "kubeauthn credential --help"),
        ),
    ),
)
"""Headings, and under each the rows by name and peer, with the name that the plot has room for.

What was not measured is left out.
"""
SHOWN = tuple((name, peer) for _, rows in GROUPS for name, peer, _ in rows)

_TEXT, _BARS, _VALUE = 392, 330, 150
_ROW, _HEADING, _TOP, _BOTTOM = 24, 28, 64, 84
_WIDTH = _TEXT + _BARS + _VALUE
_STYLE = """
  .page { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .line { stroke: #d1d9e0 }
  .one { stroke: #59636e } .faster { fill: #2da44e } .slower { fill: #8c959f } .missed { fill: #bc4c00 }
  .goal { stroke: #1f2328; stroke-width: 2 } .spread { stroke: #1f2328; stroke-opacity: .6 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 } .line { stroke: #3d444d }
    .one { stroke: #9198a1 } .faster { fill: #238636 } .slower { fill: #656c76 } .missed { fill: #db6d28 }
    .goal { stroke: #f0f6fc } .spread { stroke: #f0f6fc }
  }
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
"""


def times_as_fast(result: Result) -> float:
    """Above one is faster, whichever way the row's unit goes."""
    ratio = float(result["ratio"])
    return ratio if more_is_better(result) else 1 / ratio


def more_is_better(result: Result) -> bool:
    return str(result["unit"]).endswith("/s")


def goal_times(result: Result) -> float | None:
    """The goal on the same scale, for goals that are a ratio."""
    words = str(result["goal"]).split()
    if len(words) != 3 or words[2] != "×":
        return None
    value = float(words[1])
    return value if more_is_better(result) else 1 / value


def chosen(results: Iterable[Result]) -> list[Result]:
    found = {(result["name"], result["peer_name"]): result for result in results}
    return [found[key] for key in SHOWN if key in found and float(found[key]["ratio"]) > 0]


def svg(document: Mapping[str, Any]) -> str:
    rows = chosen(document["results"])
    values = [times_as_fast(row) for row in rows] + [goal_times(row) or 1.0 for row in rows]
    low = min(0.5, *values) if values else 0.5
    high = max(2.0, *values) if values else 2.0
    scale = _Scale(low / 1.15, high * 1.15)
    body, bottom = _body(rows, scale)
    height = bottom + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title">',
        '<title id="title">kubeauthn beside its peers: how many times as fast</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}" rx="6"/>',
        _text(16, 28, "How many times as fast as what one would use instead", "text", _BIG),
        _text(16, 48, "bar to the right: kubeauthn is faster than the peer named after “beside”", "quiet"),
    ]
    for tick in scale.ticks():
        x = scale.at(tick)
        kind = "one" if tick == 1 else "line"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 18, f"{tick:g} ×", "quiet", 'text-anchor="middle"'))
    parts += body
    parts += _legend(bottom + 44)
    parts.append(_text(16, height - 10, _machine(document), "quiet"))
    return "\n".join([*parts, "</svg>", ""])


_BIG = 'style="font-size:16px;font-weight:600"'


def _body(rows: list[Result], scale: _Scale) -> tuple[list[str], int]:
    """Every group that has a row, and where the last one ends."""
    found = {(row["name"], row["peer_name"]): row for row in rows}
    parts, top = [], _TOP
    for heading, members in GROUPS:
        shown = [(found[name, peer], short) for name, peer, short in members if (name, peer) in found]
        if not shown:
            continue
        parts.append(_text(16, top + _HEADING - 9, heading, "text", 'style="font-weight:600"'))
        top += _HEADING
        for row, short in shown:
            parts += _bar(row, short, scale, top)
            top += _ROW
    return parts, top


def _legend(y: float) -> list[str]:
    """In words and in signs: colour alone says nothing to some readers."""
    parts, x = [], 16.0
    for sign, text in (
        ('<line class="goal" x1="{x}" x2="{x}" y1="{high}" y2="{low}"/>', "the goal"),
        ('<line class="spread" x1="{x}" x2="{far}" y1="{middle}" y2="{middle}"/>', "how well the ratio is known"),
        ('<rect class="slower" x="{x}" y="{high}" width="14" height="12" rx="2"/>', "slower, no goal missed"),
        ('<rect class="missed" x="{x}" y="{high}" width="14" height="12" rx="2"/>', "goal missed"),
    ):
        parts.append(sign.format(x=x, far=x + 14, high=y - 10, low=y + 2, middle=y - 4))
        parts.append(_text(x + 20, y, text, "quiet"))
        x += 44 + 7 * len(text)
    return parts


class _Scale:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def at(self, value: float) -> float:
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return _TEXT + _BARS * min(1.0, max(0.0, part))

    def ticks(self) -> list[float]:
        steps = [base * 10.0**power for power in range(-3, 5) for base in (1, 2, 5)]
        shown = [step for step in steps if self.low <= step <= self.high]
        if len(shown) > 9:
            shown = [step for step in shown if math.log10(step).is_integer()]
        return shown


def _bar(row: Result, short: str, scale: _Scale, top: float) -> list[str]:
    value, middle = times_as_fast(row), top + _ROW / 2
    start, end = sorted((scale.at(1), scale.at(value)))
    kind = "missed" if not row["met"] else "faster" if value >= 1 else "slower"
    parts = [
        _label(middle + 4, short, str(row["peer_name"])),
        f'<rect class="{kind}" x="{start:.1f}" y="{top + 4}" width="{max(1.0, end - start):.1f}" height="{_ROW - 8}" '
        'rx="2"/>',
    ]
    known = _known_within(row)
    if known:
        left, right = scale.at(value / (1 + known)), scale.at(value * (1 + known))
        parts.append(f'<line class="spread" x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/>')
    goal = goal_times(row)
    if goal is not None:
        x = scale.at(goal)
        parts.append(f'<line class="goal" x1="{x:.1f}" x2="{x:.1f}" y1="{top + 1}" y2="{top + _ROW - 1}"/>')
    met = "" if row["met"] else ", goal missed"
    parts.append(_text(_TEXT + _BARS + 8, middle + 4, f"{_figure(value)} ×{met}", "text"))
    return parts


def _figure(value: float) -> str:
    """Two digits after the point near one, where they decide; fewer above."""
    return f"{value:.2f}" if value < 2 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _label(y: float, name: str, peer: str) -> str:
    return (
        f'<text x="{_TEXT - 12}" y="{y:.1f}" text-anchor="end"><tspan class="text">{escape(name)}</tspan>'
        f'<tspan class="quiet"> beside {escape(peer)}</tspan></text>'
    )


def _known_within(row: Result) -> float:
    """How well the ratio is known; of results that do not say it, the larger spread of the two sides."""
    if row.get("ratio_within") is not None:
        return float(row["ratio_within"])
    found = [part.strip().strip("±%") for part in str(row.get("spread", "")).split("/")]
    return max((float(part) / 100 for part in found if part.isdigit()), default=0.0)


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _machine(document: Mapping[str, Any]) -> str:
    machine = document["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {machine['openssl']}"
