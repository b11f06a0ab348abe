"""Decide: pure functions from a request and a view to a decision with its receipt."""
