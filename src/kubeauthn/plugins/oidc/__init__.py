"""`kubeauthn plugin oidc`: a login at an OpenID Connect issuer, for kubectl and every other client.

`plugin` answers from the store where it can, and nothing else is then imported; `renewal` is the whole use case;
`browser_login` and `device_login` are the two ways to log in.
"""
