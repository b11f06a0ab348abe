"""Published workloads that are made of tasks."""
