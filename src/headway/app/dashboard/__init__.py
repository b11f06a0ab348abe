"""Pages for the operator: the tasks that ran, each one's anatomy, and the fleet."""
