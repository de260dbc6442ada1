"""What a leader knows of each follower beyond the library's next and match index.

Bounds what is under way (`window_bytes_max`), sends one message at a time while it is not known
where a follower stands (a resend for every rejected message in flight would multiply), and
remembers what was told, so that nothing is said twice.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    sent_commit: int = -1  # the highest commit mark this follower was sent
    probing: bool = True  # where it stands is not known: one message at a time
    probe_wanted: bool = True  # ask with an empty message even if there is nothing to send
    sent_at: float = 0.0
    answered_at: float = 0.0
    reset_at: float = -1.0  # when it last asked to go back, and to which index
    reset_index: int = -1
    offered_at: float = -1e9
    offered_index: int = 0  # the checkpoint it is pulling; entries above are kept for it
    behind_since: float | None = None  # it lacks what the journal could forget but for it
    absent_since: float | None = None  # there is no link to it
    confirmed_at: float = float("-inf")  # send time of the last heartbeat it confirmed

    def repeated_reset(self, index: int, now: float, period_s: float) -> bool:
        """Another rejection of what was already in flight when the first one was handled."""
        if self.reset_index >= 0 and self.reset_index <= index and now - self.reset_at < period_s:
            return True
        self.reset_index = index
        self.reset_at = now
        return False

    def accepted(self, now: float) -> None:
        self.probing = False
        self.reset_index = -1
        self.answered_at = now
