"""Several processes that serve the same port, and the one that looks after them."""
