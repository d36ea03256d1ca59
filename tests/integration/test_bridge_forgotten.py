"""What is kept of a bridge beside another goes with the last that leads to it, and is not taken from the next one."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugins.bridge import definition as definitions
from kubeauthn.plugins.bridge.apart import forget_unless_used, in_use
from tests.integration.test_bridge_route import KUBECONFIG


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(KUBECONFIG.format(path=""))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def beside_another() -> definitions.Definition:
    return definitions.define(None, {}, environment="another")


@pytest.mark.parametrize("by_hand", [True, False], ids=["stop --forget", "a command that ends"])
def test_nothing_is_taken_away_while_another_command_writes_it(by_hand: bool):
    name = beside_another().name
    path = definitions.directory_of(name)
    with in_use(name):
        pass
    assert not os.path.exists(path)
    beside_another()
    (Path(path) / "in-use").touch()
    forget = (lambda: definitions.forget(name)) if by_hand else (lambda: forget_unless_used(path))
    forgetting = threading.Thread(target=forget)
    with definitions.one_at_a_time():
        forgetting.start()
        forgetting.join(0.5)
        assert definitions.load(name).name == name
    forgetting.join(20)
    assert not os.path.exists(path)


def test_a_bridge_that_is_forgotten_while_it_is_looked_at_is_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    name = beside_another().name
    path = definitions.directory_of(name)
    check = definitions.check_private

    def just_too_late(directory: str) -> None:
        if directory == path:
            shutil.rmtree(path)
        check(directory)

    monkeypatch.setattr(definitions, "check_private", just_too_late)
    with pytest.raises(EnvironmentFailure, match=f"there is no bridge {name}"):
        definitions.load(name)
