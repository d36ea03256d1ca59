"""The plugins that kubeauthn ships, each written with `kubeauthn.plugin`."""
