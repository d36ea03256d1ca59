"""Every limit of the client side, in one place."""

from __future__ import annotations

PLUGIN_REPLY_BYTES = 1 << 20
"""What a plugin may print. The largest real reply, a token with a certificate chain, is far below."""

SCRIPT_LINE_BYTES = 256
"""How much of a script Linux reads to find its interpreter."""

PLUGIN_SECONDS = 60.0
"""How long a plugin may take when no person is typing."""

PLUGIN_EXIT_GRACE_SECONDS = 1.0
"""How long standard output may stay open after the plugin itself has ended."""

EXEC_INFO_BYTES = 128 * 1024 - len("KUBERNETES_EXEC_INFO=") - 1
"""Linux takes no environment string longer than 128 KiB."""

SIGNER_REQUEST_BYTES = 128 * 1024 - len("EXTERNAL_SIGNER_PLUGIN_CONFIG=") - 1
"""The same for the request to an external signer."""

BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_LONGEST_SECONDS = 60.0
"""After a failed run the next one waits: 1 s, doubling to 60 s."""

INSTALL_HINTS_PER_HOUR = 10

KUBECONFIG_BYTES = 64 << 20
CREDENTIAL_FILE_BYTES = 1 << 20
"""A token, certificate, key or CA file."""

TOKEN_FILE_SECONDS = 60.0
"""How long a token read from a file is used before the file is read again."""

HTTP_DOCUMENT_BYTES = 1 << 20
"""A discovery document or token reply of an identity provider."""
HTTP_SECONDS = 30.0
