"""Codex: rollouts of every version."""
