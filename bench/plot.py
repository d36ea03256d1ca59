"""The plot of the results, as SVG, with nothing but text formatting: bars of how many times as fast as its peer.

A picture in a README follows neither the page's style sheet nor its scripts, so the colours for light and dark are in
the file itself. Each bar starts at "as fast as the peer"; the scale is logarithmic, so twice and half look alike. A
row's spread is a line through the end of its bar, its goal a mark across.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

Result = Mapping[str, Any]

SHOWN = (
    ("authenticate: RS256", "kube-apiserver's code"),
    ("authenticate: PS256", "kube-apiserver's code"),
    ("authenticate: ES256", "kube-apiserver's code"),
    ("authenticate: RS256, plain mappings", "kube-apiserver's code"),
    ("authenticate: RS256, 200 groups", "kube-apiserver's code"),
    ("authenticate: RS256", "PyJWT, without CEL"),
    ("authenticate: RS256", "joserfc, without CEL"),
    ("authenticate: RS256", "Authlib, without CEL"),
    ("authenticate: RS256", "cryptography's bare check"),
    ("cel: the six expressions, claims from JSON", "cel-go in Kubernetes"),
    ("cel: 6 of the six expressions", "cel-expr-python"),
    ("cel: 4 of the six expressions", "common-expression-language"),
    ("configuration: 64 issuers, read and checked", "kube-apiserver's code"),
    ("webhook: 2 workers, every token new", "Go webhook"),
    ("webhook: 2 workers, 1,000 tokens again and again", "Go webhook with cache"),
    ("webhook: 2 workers, 1,000 tokens again and again", "bare Granian"),
    ("requests a second through a proxy, 1 connections", "kubectl proxy"),
    ("requests a second through a proxy, 16 connections", "kubectl proxy"),
    ("signer: handshake, RSA-2048 outside, signing time excluded", "the same key in memory"),
    ("signer: handshake, P-256 outside, signing time excluded", "the same key in memory"),
    ("start-up: a plugin written with the SDK", "python -c pass"),
    ("start-up: kubeauthn credential --help", "kubectl --help"),
)
"""Which rows, by name and peer, in this order. What was not measured is left out."""

_TEXT, _BARS, _VALUE = 520, 360, 150
_ROW, _TOP, _BOTTOM = 26, 66, 64
_WIDTH = _TEXT + _BARS + _VALUE
_STYLE = """
  .page { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .line { stroke: #d1d9e0 }
  .one { stroke: #59636e } .faster { fill: #2da44e } .slower { fill: #bc4c00 }
  .goal { stroke: #1f2328; stroke-width: 2 } .spread { stroke: #1f2328; stroke-opacity: .45 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 } .line { stroke: #3d444d }
    .one { stroke: #9198a1 } .faster { fill: #3fb950 } .slower { fill: #db6d28 }
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
    height = _TOP + _ROW * len(rows) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title">',
        '<title id="title">kubeauthn beside its peers: how many times as fast</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}" rx="6"/>',
        _text(16, 28, "How many times as fast as the peer", "text", 'font-weight="600" style="font-size:16px"'),
        _text(16, 48, "right of the line is faster; the mark across is the goal", "quiet"),
    ]
    bottom = _TOP + _ROW * len(rows)
    for tick in scale.ticks():
        x = scale.at(tick)
        kind = "one" if tick == 1 else "line"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 18, f"{tick:g} ×", "quiet", 'text-anchor="middle"'))
    for number, row in enumerate(rows):
        parts += _bar(row, scale, _TOP + _ROW * number)
    parts.append(_text(16, height - 14, _machine(document), "quiet"))
    return "\n".join([*parts, "</svg>", ""])


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


def _bar(row: Result, scale: _Scale, top: float) -> list[str]:
    value, middle = times_as_fast(row), top + _ROW / 2
    start, end = sorted((scale.at(1), scale.at(value)))
    kind = "faster" if value >= 1 else "slower"
    name, peer = _shortened(f"{row['name']}"), str(row["peer_name"])
    parts = [
        _label(middle + 4, name, peer),
        f'<rect class="{kind}" x="{start:.1f}" y="{top + 5}" width="{max(1.0, end - start):.1f}" height="{_ROW - 10}" '
        'rx="2"/>',
    ]
    spread = _largest_spread(row)
    if spread:
        left, right = scale.at(value / (1 + spread)), scale.at(value * (1 + spread))
        parts.append(f'<line class="spread" x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/>')
    goal = goal_times(row)
    if goal is not None:
        x = scale.at(goal)
        parts.append(f'<line class="goal" x1="{x:.1f}" x2="{x:.1f}" y1="{top + 2}" y2="{top + _ROW - 2}"/>')
    met = "" if row["met"] else ", goal missed"
    parts.append(_text(_TEXT + _BARS + 8, middle + 4, f"{value:.2g} ×{met}", "text"))
    return parts


def _label(y: float, name: str, peer: str) -> str:
    return (
        f'<text x="{_TEXT - 12}" y="{y:.1f}" text-anchor="end"><tspan class="text">{escape(name)}</tspan>'
        f'<tspan class="quiet"> / {escape(peer)}</tspan></text>'
    )


def _shortened(name: str) -> str:
    for old, new in (
        (", signing time excluded", ""),
        ("requests a second through a proxy", "proxy"),
        (", 1 connections", ", 1 connection"),
    ):
        name = name.replace(old, new)
    return name


def _largest_spread(row: Result) -> float:
    found = [part.strip().strip("±%") for part in str(row.get("spread", "")).split("/")]
    return max((float(part) / 100 for part in found if part), default=0.0)


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _machine(document: Mapping[str, Any]) -> str:
    machine = document["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {machine['openssl']}"
