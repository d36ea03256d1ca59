"""What runs a block that is neither a command nor a program: the reader of its format, ours where it is ours."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import tempfile
import tomllib
from importlib import import_module
from pathlib import Path

import yaml

from kubeauthn._core.revocation import read_list
from kubeauthn._io.kuberc import read_policy
from kubeauthn.cli.arguments import CommandParser
from kubeauthn.cli.check import check_content
from kubeauthn.cli.main import COMMANDS
from kubeauthn.cli.world import real_world
from kubeauthn.client import kubeconfig
from tests.pages.blocks import Block, script

ROOT = Path(__file__).resolve().parents[2]


def check(block: Block, where: str) -> None:
    reader = READERS.get(block.language)
    assert reader, f"{where}: nothing runs a block of the kind `{block.language}`"
    try:
        reader(block.text)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from None
    except Exception as error:
        raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error


def check_unrun(block: Block, page: Path, where: str) -> None:
    """What can be said of a block that does not run here."""
    test = block.orders.get("run by")
    if test is not None:
        assert (ROOT / test).is_file(), f"{where}: there is no {test}"
        assert page.name in (ROOT / test).read_text(), f"{where}: {test} does not read {page.name}"
        return
    reason = block.orders["not run"]
    if reason == "set-up":
        _check_set_up(block.text, where)
    elif reason == "hardware":
        assert block.language == "sh", f"{where}: commands are a `sh` block"
        commands = [text for text in script(block.text) if text.startswith("kubeauthn ")]
        assert commands, f"{where}: no command of ours, so nothing of it is checked"
        for command in commands:
            parse_command(command)
    elif reason == "picture":
        assert block.language == "text", f"{where}: a picture is a `text` block"
    elif block.language == "yaml":
        assert yaml.safe_load(block.text), f"{where}: nothing is in it"


def _check_set_up(text: str, where: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = {"all", *project["project"]["optional-dependencies"]}
    for command in script(text):
        words = shlex.split(command, comments=True)
        if words[:1] == ["make"]:
            assert f"\n{words[1]}:" in makefile, f"{where}: there is no make {words[1]}"
        elif words[:2] == ["pip", "install"]:
            named = words[2].partition("[")[2].rstrip("]")
            assert not named or set(named.split(",")) <= extras, f"{where}: no such extra: {named}"
        else:
            assert words[0] in ("podman", "kubectl", "git", "cd", ".", "python"), f"{where}: {words[0]} could run"


# -- YAML: by what it holds ------------------------------------------------------------------------


def _yaml(text: str) -> None:
    document = yaml.safe_load(text)
    if document is None:
        assert text.startswith("# yaml-language-server: $schema="), "only a comment, and none that an editor obeys"
    elif document.get("kind") == "AuthenticationConfiguration":
        report, _ = check_content("page.yaml", text.encode(), "1.37", [])
        assert not report.has_faults, [found.text for found in report.all]
    elif document.get("kind") == "Preference":
        with _file(text) as path:
            read_policy(environ={**os.environ, "KUBERC": path})
    elif {"users", "clusters", "contexts"} & set(document):
        _kubeconfig(text, document)
    elif "revocations" in document:
        assert read_list(text)
    elif "jobs" in document:
        for job in document["jobs"].values():
            for command in (step["run"] for step in job["steps"] if step.get("run", "").startswith("kubeauthn ")):
                parse_command(command)
    elif "repos" in document:
        known = {hook["id"]: hook["entry"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
        for hook in (hook for repo in document["repos"] for hook in repo["hooks"]):
            parse_command(shlex.join([*known[hook["id"]].split(), *hook.get("args", []), "FILE"]))
    else:
        raise AssertionError(f"nothing reads such YAML: {', '.join(document)}")


def _kubeconfig(text: str, document: dict) -> None:
    """A page shows a part: what it leaves out is put around it, so that each user can be resolved."""
    clusters = document.get("clusters") or [{"name": "page", "cluster": {"server": "https://127.0.0.1:1"}}]
    users = document.get("users") or [{"name": "page", "user": {}}]
    contexts = [
        {"name": f"page-{number}", "context": {"cluster": clusters[0]["name"], "user": user["name"]}}
        for number, user in enumerate(users)
    ]
    whole = {"clusters": clusters, "users": users, "contexts": contexts, **document}
    with _file(yaml.safe_dump(whole)) as path:
        kubeconfig.load(path)
        for context in contexts if "contexts" not in document else ():
            kubeconfig.resolve(context["name"], path=path)


@contextlib.contextmanager
def _file(text: str):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_text(text)
        path.chmod(0o600)
        yield str(path)


def parse_command(text: str) -> None:
    """By the command's own parser: an option that is gone, or never was, is an error."""
    program, *words = shlex.split(text.replace("\\\n", " "), comments=True)
    assert program == "kubeauthn", text
    name = next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS)
    module = import_module(f"kubeauthn.cli.{COMMANDS[name][0]}")
    parser = CommandParser(real_world(), name)
    module.add_arguments(parser)
    parser.parse_args(words[len(name.split()) :])


READERS = {"yaml": _yaml, "json": json.loads, "toml": tomllib.loads}
