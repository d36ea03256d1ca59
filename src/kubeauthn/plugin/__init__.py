"""For those who write plugins: one module per kind of plugin, in which an author writes one function.

- `kubeauthn.plugin.credential`: exec credential plugins.
- `kubeauthn.plugin.signer`: external signers, for keys that stay where they are.

Nothing is imported here: a plugin is started by every kubectl call.
"""
