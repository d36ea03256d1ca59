"""The shells: processes, files, TLS and clocks. They touch the world and decide nothing."""
