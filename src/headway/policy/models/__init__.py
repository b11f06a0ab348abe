"""Which model answers: aliases, tiers, rules, pins, fallbacks, and a better one where an answer will not do."""
