"""Who may begin: tasks against a replica's memory, calls against its window, deadlines against what can be done."""
