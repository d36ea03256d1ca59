"""The live oracle: generated cases, answered by Kubernetes' own code and by ours, and compared."""
