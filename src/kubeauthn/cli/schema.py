"""Print the JSON Schema (draft 2020-12) of the AuthenticationConfiguration file, for editors.

An editor completes and underlines with it; what only Kubernetes' own rules can say, `kubeauthn check` says.
"""

from __future__ import annotations

import json

from kubeauthn.cli import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "the JSON Schema of the configuration file, for editors"


def add_arguments(parser: ArgumentParser) -> None:
    """It has none."""


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._core.authentication.json_schema import configuration_schema

    world.say(json.dumps(configuration_schema(), indent=2))
    return failure.YES
