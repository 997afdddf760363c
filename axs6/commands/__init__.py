"""The sub-commands. Each module imports what it runs only when it runs it."""
