"""The compatibility page: what each Python client does with exec plugins, alone and with kubeauthn.

`python -m tests.compat --write` measures and writes docs/compat/python-clients.md; `--check` measures again and
fails if the page says something else. Both fail if a client with kubeauthn does anything but the right thing.
"""
