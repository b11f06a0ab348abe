"""Experiments: load whose unit is the task, played against any endpoint and read by the same anatomy as all else."""
