"""What the official client, its async side and kubernetes_asyncio share: one generator made all three."""

from __future__ import annotations

import os
from typing import Any

from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def open_named(
    context: str | None, config_file: str | os.PathLike[str] | None, options: dict[str, Any]
) -> tuple[Access, dict[str, Any]]:
    """`config_file` is the libraries' name for `kubeconfig`. The second part is the options that are not ours."""
    if hasattr(config_file, "read"):
        raise UsageError("config_file is the path of a kubeconfig; an open file is not taken")
    if config_file is not None:
        options["kubeconfig"] = os.path.expanduser(os.fspath(config_file))
    return access_and_rest(context, options)


def fill_or_set_default(
    configurations: Any, given: Any | None, access: Access, configure: Callable[[Any, Access], None]
) -> None:
    """Fills the configuration that is given; without one, the library's default, which its later clients copy."""
    configuration = configurations() if given is None else given
    # What one that is used again still holds is for another server, or for another user.
    configuration.api_key, configuration.api_key_prefix = {}, {}
    configuration.username = configuration.password = None
    configuration.refresh_api_key_hook = None
    configure(configuration, access)
    if given is None:
        configurations.set_default(configuration)
