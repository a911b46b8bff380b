"""How agents hold a memory: tools, the MCP server, files, and one file for each framework."""
