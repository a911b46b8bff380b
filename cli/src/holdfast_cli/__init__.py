"""The command line of Holdfast: commands, hooks of coding agents, importers and exporters, the demo."""
