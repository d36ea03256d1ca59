"""For those who write plugins: one module per kind of plugin, in which an author writes one function.

- `kubeauthn.plugin.credential`: exec credential plugins.

Nothing is imported here: a plugin is started by every kubectl call.
"""
