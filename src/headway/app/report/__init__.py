"""Reports on one task: the same figures for a terminal, a browser and a machine."""
