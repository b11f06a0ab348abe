"""Understand: from spans to an anatomy, a critical path and levers."""
