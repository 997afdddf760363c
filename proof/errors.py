"""What a proof raises."""


class NotShownError(Exception):
    """A step of a proof that does not succeed: what was not shown."""
