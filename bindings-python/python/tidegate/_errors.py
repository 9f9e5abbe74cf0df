"""The exceptions. Each derives from ``TidegateError`` and from the built-in one that fits."""

from __future__ import annotations


class TidegateError(Exception):
    """A call was refused and changed nothing. ``code`` names the kind of error in a word."""

    code: str = "other"


class PolicyError(TidegateError, ValueError):
    """A limit, rule or policy that is wrong. ``problems`` lists each mistake: where, and what."""

    code = "policy"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.problems: list[tuple[str, str]] = []

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), self.args, {"problems": self.problems})


class InvalidKeyError(TidegateError, ValueError):
    """A key that is not the rule's: a wrong number of parts, or text that is not UTF-8."""

    code = "key"


class UnknownRuleError(TidegateError, KeyError):
    """No rule of that name, or it is not clear which one is meant."""

    code = "rule"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OperationError(TidegateError, ValueError):
    """The operation is not one for this rule or limiter."""

    code = "operation"


class RangeError(TidegateError, ValueError):
    """A number outside of what is allowed, such as a ``max`` above the rule's ceiling."""

    code = "range"


class AddressError(TidegateError, ValueError):
    """An address that is none."""

    code = "address"


class StoreError(TidegateError, OSError):
    """The store can't be had or used."""

    code = "store"


class PolicyFileError(TidegateError, OSError):
    """A policy file that can't be read."""

    code = "file"


class MemoryLimitError(TidegateError, ValueError):
    """More memory than the policy allows, or than there is."""

    code = "memory"


class ClosedError(TidegateError, ValueError):
    """The limiter was closed."""

    code = "closed"


class InternalError(TidegateError, RuntimeError):
    """A mistake in Tidegate itself. The process goes on; please report the message."""

    code = "panic"
