"""Headway makes AI agents predictably fast."""
