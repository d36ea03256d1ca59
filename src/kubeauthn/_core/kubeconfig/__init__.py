"""kubeconfig: its rules, without a file or an environment. `_io.kubeconfig` is the shell around them."""
