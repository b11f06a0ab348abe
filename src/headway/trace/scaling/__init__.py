"""How a model's calls take time, and how that grows with how many are under way: speed, curve, fits, knee."""
