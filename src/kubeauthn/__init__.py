"""Kubernetes authentication, both ends of the wire.

The doors:

- `kubeauthn.client`: call an API server with the credentials of a kubeconfig;
  one adapter module per HTTP or Kubernetes library.
- `kubeauthn.plugin`: write a credential plugin; you write one function.
- `kubeauthn.testing`: an API server, an issuer and a clock for tests.
- `kubeauthn.errors`: everything that can be raised.

Nothing is imported here: a plugin is started by every kubectl call, and what it
does not use must cost it nothing.
"""

__version__ = "0.1.0"
