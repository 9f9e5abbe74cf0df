"""Rate limits for chat bots, agent hubs and gateways.

They are exact and fast, and all processes of a host share them.

>>> import tidegate
>>> limiter = tidegate.Limiter("2/min")
>>> [limiter.allow("alice") for _ in range(3)]
[True, True, False]
"""

from ._errors import (
    AddressError,
    ClosedError,
    InternalError,
    InvalidKeyError,
    MemoryLimitError,
    OperationError,
    PolicyError,
    PolicyFileError,
    RangeError,
    StoreError,
    TidegateError,
    UnknownRuleError,
)
from ._limited import RateLimited, limited
from ._results import (
    BlockedKey,
    Budget,
    Change,
    Changes,
    Event,
    Events,
    Finding,
    Inspected,
    KeyCount,
    LimitLeft,
    LimitUse,
    Metrics,
    Recorded,
    Stats,
    Step,
    Why,
)
from ._tidegate import (
    IETF_DRAFT,
    Decision,
    Limiter,
    ManualClock,
    Permit,
    Reservation,
    Rule,
    __version__,
    ip_key,
)

__all__ = [
    "IETF_DRAFT",
    "AddressError",
    "BlockedKey",
    "Budget",
    "Change",
    "Changes",
    "ClosedError",
    "Decision",
    "Event",
    "Events",
    "Finding",
    "Inspected",
    "InternalError",
    "InvalidKeyError",
    "KeyCount",
    "LimitLeft",
    "LimitUse",
    "Limiter",
    "ManualClock",
    "MemoryLimitError",
    "Metrics",
    "OperationError",
    "Permit",
    "PolicyError",
    "PolicyFileError",
    "RangeError",
    "RateLimited",
    "Recorded",
    "Reservation",
    "Rule",
    "Stats",
    "Step",
    "StoreError",
    "TidegateError",
    "UnknownRuleError",
    "Why",
    "__version__",
    "ip_key",
    "limited",
]
