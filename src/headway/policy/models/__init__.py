"""Which model answers: aliases, tiers, rules, a person's pins, fallbacks, and a better one where an answer will not do."""
