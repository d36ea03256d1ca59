"""What `kubeauthn doctor` looks at, one file per part of the client side."""
