"""The zone whose days are meant."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from holdfast.errors import InvalidInput, shown


def check_zone(zone: str | tzinfo | None) -> tzinfo:
    """Return a zone by its name, such as "Europe/Berlin"; for None that of the machine.

    Raises:
        InvalidInput: there is none of that name, or it is of another type.

    """
    if isinstance(zone, tzinfo):
        return zone
    if zone is not None and not isinstance(zone, str):
        raise InvalidInput(f"`zone` is {shown(zone)}.", 'Pass a name such as "Europe/Berlin", or a tzinfo.')
    name = _zone_of_machine() if zone is None else zone
    if name in ("", "UTC", "Etc/UTC"):
        return UTC
    # Slow to import, and most servers have UTC.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # a name that is unknown, or no name
        if zone is None:
            return datetime.now().astimezone().tzinfo or UTC
        raise InvalidInput(
            f"There is no zone {shown(zone)}.", 'Pass a name such as "Europe/Berlin".'
        ) from error


def local(at: datetime, zone: tzinfo | None) -> datetime:
    """Return a time in a zone; at an end of the calendar as it is."""
    try:
        return at.astimezone(zone or UTC)
    except OverflowError:
        return at


def _zone_of_machine() -> str:
    """Return the name of the zone of this machine, "" if it says none."""
    if name := os.environ.get("TZ"):
        return name.lstrip(":")
    try:
        return str(Path("/etc/localtime").readlink()).rpartition("zoneinfo/")[2]
    except OSError:
        return ""
