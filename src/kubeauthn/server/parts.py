"""The parts of the server that stand beside its core. Each is a module with any of these:

- `add_arguments(parser)`: its options of `kubeauthn serve`; their values are in `context.options.parts`
- `check_arguments(arguments)`: tells what could not work, before there are workers; it may add to the arguments
- `routes(context)`: its paths
- `wrap(decider, context)`: a decider around the decider; what must be closed goes to `context.at_end`, what a hang-up
  concerns to `context.on_hangup`
"""

from __future__ import annotations

PARTS = ("kubeauthn.server.extensions", "kubeauthn.server.forward_auth")
