"""Headway as an MCP server: an agent asks where tasks' time went. See docs/mcp.md."""
