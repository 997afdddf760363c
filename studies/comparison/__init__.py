"""Formats compared in one table: storage, errors, hardware and accuracy of models."""
