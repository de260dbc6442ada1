"""Settings that cannot be safe are refused where they are made."""

import pytest

from lograft_replication.timing import GroupLimits, Timing


def test_entries_stay_below_the_size_at_which_the_library_cuts_them() -> None:
    with pytest.raises(AssertionError):
        GroupLimits(command_bytes_max=4096, append_bytes_max=4096)


def test_lease_ends_before_voters_may_turn_away() -> None:
    with pytest.raises(AssertionError):
        Timing(lease_s=0.8, election_s_min=0.8)


def test_several_heartbeats_fit_into_a_lease() -> None:
    with pytest.raises(AssertionError):
        Timing(heartbeat_s=0.3)
