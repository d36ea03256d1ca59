"""The bridge: a loopback port through which unmodified kubectl, helm and k9s reach a cluster as any user entry."""
