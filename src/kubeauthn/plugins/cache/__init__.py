"""`kubeauthn plugin cache -- COMMAND…`: keeps the credential of any plugin on the disk until it ends.

`plugin` answers from the cache where it can, and nothing else is then imported; `wrapped` runs the command.
"""
