"""Everything the project claims, tried on the real kube-apiserver and kubectl. `make e2e` runs it."""
