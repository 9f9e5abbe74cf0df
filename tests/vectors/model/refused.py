"""The error of an operation."""


class Refused(Exception):
    """An operation that is an error, not a denial."""
