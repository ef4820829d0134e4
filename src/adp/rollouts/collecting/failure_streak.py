"""Stopping a run in which nothing works."""

from __future__ import annotations

from adp.rollouts.collecting.counts import Episode, reason_of
from adp_schema.errors import RolloutError


class Streak:
    """Counts episodes in a row that broke for the same reason.

    Args:
        most: how many are too many.
        at_once: how many episodes run at once.
    """

    def __init__(self, most: int, at_once: int) -> None:
        self._most, self._at_once = most, at_once
        self._well = False
        self._reason, self._count = "", 0

    def add(self, episode: Episode, message: str | None) -> None:
        """Count an episode that ended.

        Raises:
            RolloutError: too many broke.
        """
        if episode.error_type is None:
            self._well, self._reason, self._count = True, "", 0
            return
        reason = reason_of(episode)
        self._count = self._count + 1 if reason == self._reason else 1
        self._reason = reason
        most = self._most
        if self._well:  # those that run at once meet a short failure together
            most = max(most, 2 * self._at_once)
        if self._count >= most:
            raise RolloutError(
                f"stopped: {most} episodes in a row broke ({reason}: {message}); "
                "mend the cause, and go on with the same call and --retry-failed"
            )
