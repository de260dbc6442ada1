"""One flipped bit anywhere: within what was known to be durable it is damage, behind it a cut."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lograft_replication import journal_file
from lograft_replication import journal_format as fmt
from lograft_wire import errors
from sim.disk import SimDisk
from support.crash_disk import new_disk
from support.journal_desk import JournalDesk, command, fill

PATH = journal_file.path_of("data/journal", 1)


@dataclass
class Written:
    disk: SimDisk
    records: list[fmt.Record]

    @property
    def end(self) -> int:
        return self.records[-1].end

    def covering(self, position: int) -> fmt.Record | None:
        """The record whose checked bytes lie there; None for padding and what is unused."""
        for record in self.records:
            if record.position <= position < record.payload_position + record.length:
                return record
        return None


def written() -> Written:
    """A journal of three batches, each of four entries and a vote."""
    disk = new_disk(1)
    disk.make_folder("data")
    desk = JournalDesk(disk, "data/journal")
    for term in (1, 2, 3):
        fill(desk, 1, count=4)
        desk.journal.group(2).save_state(term=term, vote="a@1")
        desk.settle()
    file = disk.open(PATH)
    data = file.read_at(0, file.size())
    epoch = fmt.parse_file_header(data, path=PATH).epoch
    records: list[fmt.Record] = []
    position = fmt.FILE_HEADER_BYTES
    while (record := fmt.parse_record(memoryview(data), position, epoch=epoch)) is not None:
        records.append(record)
        position = record.end
    assert len(records) == 16
    return Written(disk, records)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_flipped_bit_is_damage_or_a_cut_and_never_served(data: st.DataObject) -> None:
    journal = written()
    position = data.draw(st.integers(0, journal.end + 100))
    journal.disk.volume.flip_bit(PATH, position, bit=data.draw(st.integers(0, 7)))
    hit = journal.covering(position)
    durable = max(record.durable for record in journal.records)
    header_bytes = fmt.FILE_HEADER.size + fmt.FILE_HEADER_CRC.size
    if position < header_bytes or (hit is not None and hit.sequence <= durable):
        with pytest.raises(errors.DamagedError) as caught:
            JournalDesk(journal.disk, "data/journal")
        assert caught.value.path == PATH
        assert caught.value.position == (0 if hit is None else hit.position)
        return
    found = JournalDesk(journal.disk, "data/journal").journal
    assert found.durable_sequence == (16 if hit is None else hit.sequence - 1)
    view = found.group(1)
    assert view.last_index >= 8
    assert found.group(2).term >= 2
    assert view.entries(1, bytes_max=1 << 20) == [
        (command(1, at, 1), at, 1) for at in range(1, view.last_index + 1)
    ]
