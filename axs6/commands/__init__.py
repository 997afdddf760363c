"""The sub-commands. Each module imports heavy packages only when its command runs."""
