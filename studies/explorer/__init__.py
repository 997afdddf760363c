"""The explorer: one page that encodes values in any two formats, and shows what formats cost."""
