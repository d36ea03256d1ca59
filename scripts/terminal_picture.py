"""docs/images/explain.svg: what `kubeauthn explain` prints on a terminal about a token that is refused.

The command really runs, on a pseudo-terminal; its colours are turned into an SVG that follows the reader's light or
dark. The same code gives the same picture, byte by byte: `--check` says whether the committed one is it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from pathlib import Path

from kubeauthn.cli.playground_pages import example
from kubeauthn.testing import Issuer

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "explain.svg"
COLUMNS = 100
NOW = 1_900_000_060
COMMAND = ["explain", "authn.yaml", "--token-file", "jane.jwt", "--jwks", "keys.json"]
ISSUER = "https://dex.example.com"

SIZE, ADVANCE, LEADING, MARGIN = 14, 8.4, 20, 24
STYLE = """\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:#1f2328}
.back{fill:#f6f8fa;stroke:#d1d9e0}
.good{fill:#116329}.bad{fill:#b3261e}.doubt{fill:#7d4e00}.note{fill:#0b5c75}.aside{fill:#59636e}.strong{font-weight:700}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.back{fill:#151b23;stroke:#3d444d}
.good{fill:#56d364}.bad{fill:#ff8a80}.doubt{fill:#e3b341}.note{fill:#6bd2ee}.aside{fill:#9198a1}
}"""
KINDS = {"32": "good", "31": "bad", "33": "doubt", "36": "note", "1": "strong", "2": "aside", "0": ""}


def printed() -> str:
    """What the terminal got, on a stage that is the same every time."""
    with tempfile.TemporaryDirectory() as folder, Issuer() as issuer:
        Path(folder, "authn.yaml").write_text(example("dex", NOW)[0])
        claims = {"iss": ISSUER, "aud": "kubernetes", "sub": "CgRqYW5l", "iat": NOW - 60, "exp": NOW + 3540}
        claims |= {"email": "jane@example.com", "email_verified": False, "groups": ["dev"]}
        Path(folder, "jane.jwt").write_text(issuer.sign(claims))
        Path(folder, "keys.json").write_text(json.dumps(issuer.jwks()))
        text = on_terminal([sys.executable, "-m", "kubeauthn", *COMMAND, "--now", str(NOW), "--show-claims"], folder)
        return text.replace(issuer.kids[0], "key-1")


def on_terminal(argv: list[str], folder: str) -> str:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(argv, cwd=folder, env={**environ, "TERM": "xterm"}, stdout=slave, stderr=slave)
    os.close(slave)
    pieces = []
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux says so when the last writer is gone
            piece = b""
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    if process.wait() != 1:
        raise SystemExit(f"the token was not refused: {b''.join(pieces).decode()}")
    return b"".join(pieces).decode().replace("\r\n", "\n")


def runs(line: str) -> list[tuple[str, str]]:
    """Pieces of a line, each with how it is painted."""
    first, *rest = line.split("\x1b[")
    found = [("", first)]
    for part in rest:
        code, _, text = part.partition("m")
        found.append((KINDS[code], text))
    return [(kind, text) for kind, text in found if text]


def row(line: str, number: int) -> str:
    """Each piece at its column and as wide as its characters, whatever font the reader has."""
    spans, column = [], 0
    for kind, text in runs(line):
        for begin, word in cells(text):
            where = f'x="{MARGIN + (column + begin) * ADVANCE:g}" textLength="{len(word) * ADVANCE:g}"'
            mark = f' class="{kind}"' if kind else ""
            spans.append(f"<tspan {where}{mark}>{escape(word, quote=False)}</tspan>")
        column += len(text)
    return f'<text y="{MARGIN + 10 + number * LEADING}">{"".join(spans)}</text>' if spans else ""


def cells(text: str) -> list[tuple[int, str]]:
    """The stretches between two or more blanks, with their columns: columns are made of positions, not of blanks."""
    found, begin = [], 0
    for part in text.split("  "):
        lead = len(part) - len(part.lstrip(" "))
        if part.strip():
            found.append((begin + lead, part.strip(" ")))
        begin += len(part) + 2
    return found


def picture(text: str) -> str:
    lines = [
        f"\x1b[2m$\x1b[0m \x1b[1mkubeauthn {' '.join(COMMAND)} --show-claims\x1b[0m",
        *text.rstrip("\n").split("\n"),
    ]
    lines = lines[: lines.index("claims") - 1] if "claims" in lines else lines
    width, height = round(2 * MARGIN + COLUMNS * ADVANCE), 2 * MARGIN + len(lines) * LEADING
    rows = [made for number, line in enumerate(lines) if (made := row(line, number))]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-label="kubeauthn explain: each step of a token that is refused, and why">',
            f"<style>{STYLE}</style>",
            f'<rect class="back" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def main(words: list[str]) -> int:
    made = picture(printed())
    if words == ["--check"]:
        if TARGET.read_text() != made:
            print("docs/images/explain.svg is not what `kubeauthn explain` prints: run scripts/screenshots")
            return 1
        return 0
    TARGET.write_text(made)
    print(f"{TARGET.relative_to(TARGET.parents[2])}: {len(made)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
