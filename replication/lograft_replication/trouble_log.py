"""A log that repeats itself slowly: one line per trouble and interval, so that neither a stranger
nor a peer that is down for a night can fill the disk with our log. Called by `link`.
"""

import logging

from lograft_log.env import Clock


class TroubleLog:
    """At most `key_count_max` troubles are told apart; beyond that the newest wait unsaid."""

    def __init__(
        self, logger: logging.Logger, clock: Clock, *, interval_s: float, key_count_max: int
    ) -> None:
        self._logger = logger
        self._clock = clock
        self._interval_s = interval_s
        self._key_count_max = key_count_max
        self._said_at_s: dict[str, float] = {}

    def say(self, key: str, text: str) -> None:
        now_s = self._clock.now_s()
        said_at_s = self._said_at_s.get(key)
        if said_at_s is not None and now_s - said_at_s < self._interval_s:
            return
        if said_at_s is None and not self._has_room(now_s):
            return
        self._said_at_s[key] = now_s
        self._logger.warning("peer link trouble what=%s %s", key.split()[0], text)

    def _has_room(self, now_s: float) -> bool:
        if len(self._said_at_s) >= self._key_count_max:
            recent_s = now_s - self._interval_s
            kept = {key: at_s for key, at_s in self._said_at_s.items() if at_s > recent_s}
            self._said_at_s = kept
        return len(self._said_at_s) < self._key_count_max
