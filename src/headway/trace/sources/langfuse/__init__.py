"""Langfuse: exports and pages of its API."""
