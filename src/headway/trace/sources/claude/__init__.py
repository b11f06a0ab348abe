"""Claude Code: sessions, sub-agents, web exports."""
