"""The drivers that are there, for tests that take a `driver`; and a `lab` for each test."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import MissingExtra
from tests.conftest import in_ci
from tests.integration.adapters.driver import Client, Driver
from tests.integration.adapters.lab import Lab

HERE = Path(__file__).parent


class MissingLibrary(Driver):
    """Stands for drivers whose library is not installed."""

    def __init__(self, module: str, reason: str) -> None:
        self.name = module
        self.reason = reason

    def open(self, **options: Any) -> Client:
        raise NotImplementedError(self.reason)


def found_drivers() -> list[Driver]:
    """Every driver in drivers_*.py, in the order of the file names."""
    drivers: list[Driver] = []
    for path in sorted(HERE.glob("drivers_*.py")):
        module = f"tests.integration.adapters.{path.stem}"
        try:
            drivers += importlib.import_module(module).DRIVERS
        except (MissingExtra, ModuleNotFoundError) as error:
            if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(("kubeauthn", "tests")):
                raise
            drivers.append(MissingLibrary(path.stem, str(error)))
    return drivers


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", found_drivers(), ids=lambda found: found.name, indirect=True)


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    if isinstance(found, MissingLibrary):
        if in_ci():
            pytest.fail(f"{found.name}: {found.reason} (in CI nothing is left out)", pytrace=False)
        pytest.skip(f"{found.name}: {found.reason}")
    return found


@pytest.fixture(autouse=True)
def no_credential_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(tmp_path, monkeypatch, stack)
