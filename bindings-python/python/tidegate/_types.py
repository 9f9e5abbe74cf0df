"""The types of arguments, for functions that wrap calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias

_Part: TypeAlias = str | bytes | int | IPv4Address | IPv6Address

Key: TypeAlias = _Part | Sequence[_Part]
"""A key. A sequence is a tuple or list of parts; a number is its digits, an address its text."""

Match: TypeAlias = Mapping[str, str | int | bool | Sequence[str | int | bool]]
"""Values of parts or attributes that a call must have."""

Time: TypeAlias = float | timedelta
"""Seconds, or a timedelta."""

Lasting: TypeAlias = float | timedelta | str
"""For how long a run-time change is made: seconds, a timedelta, or a text such as ``"1h"``."""

Limits: TypeAlias = str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any]
"""One limit or several: text, maps, or maps by name."""
