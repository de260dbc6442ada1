"""How long things take in a Raft group, and how much may be under way; one place for all groups."""

from dataclasses import dataclass

LEASE_ROOM = 1.1  # clocks may differ in speed by almost so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. The lease must end before any voter may turn to another leader, and before any
    voter says that it has; each by its own clock, hence the room between lease_s, lease_told_s and
    election_s_min."""

    heartbeat_s: float = 0.1
    election_s_min: float = 0.8
    election_s_max: float = 1.6
    lease_s: float = 0.64
    fallback_s: float = 0.8  # a leader without a majority for this long steps down
    reset_s_min: float = 0.02  # a lost link to the leader starts the election this soon
    reset_s_max: float = 0.12
    announce_s: float = 0.005  # a commit waits this long for entries to ride with
    probe_s: float = 0.3  # silence after which a follower is asked again where it stands
    transfer_s: float = 1.0  # a planned transfer that takes longer is given up
    unfit_s: float = 10.0  # a member whose state has holes waits so much longer before it stands,
    # and as leader asks another to take over this often
    checkpoint_s: float = 60.0

    @property
    def lease_told_s(self) -> float:
        """How long a voter says that a leader it answered may believe in its lease."""
        return self.lease_s * LEASE_ROOM

    def __post_init__(self) -> None:
        assert self.lease_told_s <= self.election_s_min < self.election_s_max, self
        assert self.heartbeat_s * 3 < self.lease_s, self


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    command_bytes_max: int = 2 << 20
    proposals_max: int = 4096  # proposed and not yet answered
    window_bytes_max: int = 16 << 20  # sent to one follower and not yet acknowledged
    append_bytes_max: int = 4 << 20  # entries in one Append; above command_bytes_max, so that
    # pysyncobj never cuts an entry into chunks (its end mark for chunks is wrong)
    apply_bytes_max: int = 8 << 20  # applied in one turn of the loop
    checkpoint_bytes: int = 64 << 20  # journal bytes of a group that call for a checkpoint
    lag_bytes_max: int = 4 << 30  # a reachable follower further behind than this installs
    lag_s_max: float = 3600.0  # or behind for longer than this
    absent_s_max: float = 60.0  # one that is away (a restart) is waited for as long
    learner_lag_bytes_max: int = 1 << 20  # a learner nearer than this may become a voter

    def __post_init__(self) -> None:
        assert self.append_bytes_max > self.command_bytes_max, self
