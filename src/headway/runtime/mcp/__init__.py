"""MCP servers as tools: kept connections, limits of our own, and nothing left running. See docs/mcp.md."""
