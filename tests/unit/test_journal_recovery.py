"""What opening makes of files that are torn, damaged, missing or foreign."""

import contextlib

import pytest

from lograft_log import env
from lograft_log.hot import crc
from lograft_replication import journal_file
from lograft_replication import journal_format as fmt
from lograft_wire import errors
from sim.loop import SimCrash
from support.crash_disk import new_disk, reboot
from support.journal_desk import INCARNATION, SMALL, JournalDesk, command, fill

DISK = env.RealDisk()


@pytest.fixture
def folder(tmp_path: object) -> str:
    return f"{tmp_path}/journal"


def path_of(folder: str, number: int) -> str:
    return journal_file.path_of(folder, number)


def position_of(folder: str, number: int, text: bytes) -> int:
    file = DISK.open(path_of(folder, number), writable=False)
    data = file.read_at(0, file.size())
    file.close()
    return data.index(text)


def overwrite(folder: str, number: int, position: int, data: bytes) -> None:
    file = DISK.open(path_of(folder, number))
    file.write_at(position, [data])
    file.close()


def damage(folder: str) -> errors.DamagedError:
    with pytest.raises(errors.DamagedError) as caught:
        JournalDesk(DISK, folder)
    return caught.value


def test_bad_record_in_the_last_batch_is_a_torn_tail(folder: str) -> None:
    desk = JournalDesk(DISK, folder)
    fill(desk, 1, count=3)
    desk.settle()
    fill(desk, 1, count=3)
    desk.settle()
    overwrite(folder, 1, position_of(folder, 1, b"1/5/1;"), b"?")
    again = JournalDesk(DISK, folder).journal
    assert again.group(1).last_index == 4
    assert again.recovered_cut_bytes > 0


def test_bad_record_before_the_last_batch_is_damage(folder: str) -> None:
    desk = JournalDesk(DISK, folder)
    for _ in range(3):
        fill(desk, 1, count=3)
        desk.settle()
    position = position_of(folder, 1, b"1/5/1;")
    overwrite(folder, 1, position, b"?")
    error = damage(folder)
    assert error.path == path_of(folder, 1)
    assert error.position == position - fmt.RECORD_HEADER_BYTES


def test_last_batch_is_protected_once_it_was_marked(folder: str) -> None:
    desk = JournalDesk(DISK, folder)
    fill(desk, 1, count=3)
    desk.quiet()
    overwrite(folder, 1, position_of(folder, 1, b"1/2/1;"), b"?")
    damage(folder)


def test_lost_vote_within_what_was_durable_is_damage(folder: str) -> None:
    desk = JournalDesk(DISK, folder)
    desk.journal.group(1).save_state(term=3, vote="abc@1")
    desk.quiet()
    overwrite(folder, 1, position_of(folder, 1, b"abc@1"), b"x")
    damage(folder)


def test_records_behind_a_hole_never_come_back(folder: str) -> None:
    desk = JournalDesk(DISK, folder)
    fill(desk, 1, count=3)
    desk.settle()
    fill(desk, 1, count=5)  # entries 4 to 8 in one flush that is never reported
    desk.scheduler.turn()
    write, _ = desk.writer.waiting[0]
    write()
    overwrite(folder, 1, position_of(folder, 1, b"1/4/1;"), b"?")  # the sector of 4 was lost

    desk = JournalDesk(DISK, folder)
    assert desk.journal.group(1).last_index == 3
    fill(desk, 1, count=1, term=2)  # takes the sequence number, and the size, of the lost one
    desk.settle()
    for _ in range(2):
        desk = JournalDesk(DISK, folder)
        view = desk.journal.group(1)
        assert [view.entry(at)[2] for at in range(1, view.last_index + 1)] == [1, 1, 1, 2]


def test_journal_without_strays_goes_on_in_the_same_file(folder: str) -> None:
    for _ in range(3):
        desk = JournalDesk(DISK, folder)
        fill(desk, 1, count=1)
        desk.quiet()
    assert [name for name in DISK.names(folder) if name.endswith(".journal")] == [
        "0000000000000001.journal"
    ]
    assert JournalDesk(DISK, folder).journal.group(1).last_index == 3


def test_torn_first_flush_of_all_leaves_an_empty_journal(folder: str) -> None:
    desk = JournalDesk(DISK, folder)
    fill(desk, 1, count=2)
    desk.settle()
    overwrite(folder, 1, fmt.FILE_HEADER_BYTES, b"?")  # its table
    desk = JournalDesk(DISK, folder)
    assert desk.journal.groups() == []
    fill(desk, 1, count=1, term=5)
    desk.quiet()
    assert JournalDesk(DISK, folder).journal.group(1).entry(1) == (command(1, 1, 5), 1, 5)


def grown(folder: str) -> JournalDesk:
    """Files 1 to 3 in use, all of them needed."""
    desk = JournalDesk(DISK, folder)
    for _ in range(40):
        fill(desk, 1, count=1, size=1000)
        desk.settle()
    return desk


def test_missing_file_in_the_middle_is_damage(folder: str) -> None:
    grown(folder)
    DISK.remove(path_of(folder, 2))
    assert damage(folder).path == path_of(folder, 2)


def test_missing_oldest_file_is_damage_while_it_is_needed(folder: str) -> None:
    grown(folder)
    DISK.remove(path_of(folder, 1))
    assert "entry 1 of group 1" in str(damage(folder))


def test_bad_table_is_damage(folder: str) -> None:
    grown(folder)
    overwrite(folder, 2, fmt.FILE_HEADER_BYTES + 8, b"?")
    error = damage(folder)
    assert (error.path, error.position) == (path_of(folder, 2), fmt.FILE_HEADER_BYTES)


def test_bad_end_of_a_full_file_is_damage(folder: str) -> None:
    grown(folder)
    last = max(at for at in range(1, 41) if f"1/{at}/1;".encode() in _content(folder, 1))
    overwrite(folder, 1, position_of(folder, 1, f"1/{last}/1;".encode()), b"?")
    error = damage(folder)
    assert error.path == path_of(folder, 1)


def _content(folder: str, number: int) -> bytes:
    file = DISK.open(path_of(folder, number), writable=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def test_bad_file_header_is_damage(folder: str) -> None:
    grown(folder)
    overwrite(folder, 3, 16, b"?")
    assert damage(folder).path == path_of(folder, 3)


def test_shortened_file_is_damage(folder: str) -> None:
    grown(folder)
    file = DISK.open(path_of(folder, 2))
    file.truncate(SMALL.file_bytes - 512)
    file.close()
    assert damage(folder).path == path_of(folder, 2)


def test_foreign_file_is_damage(folder: str) -> None:
    grown(folder)
    with pytest.raises(errors.DamagedError, match="incarnation"):
        JournalDesk(DISK, folder, incarnation=bytes(16))
    JournalDesk(DISK, folder, incarnation=INCARNATION)


def test_file_under_a_wrong_number_is_damage(folder: str) -> None:
    JournalDesk(DISK, folder)
    DISK.rename(path_of(folder, 1), path_of(folder, 2))
    assert damage(folder).path == path_of(folder, 2)


def test_newer_format_is_refused_but_not_called_damage(folder: str) -> None:
    JournalDesk(DISK, folder)
    header = bytearray(_content(folder, 1)[: fmt.FILE_HEADER.size])
    header[8] = fmt.VERSION + 1
    check = fmt.FILE_HEADER_CRC.pack(crc.checksum(bytes(header)))
    overwrite(folder, 1, 0, bytes(header) + check)
    with pytest.raises(errors.StorageError, match="format version 2") as caught:
        JournalDesk(DISK, folder)
    assert not isinstance(caught.value, errors.DamagedError)


@pytest.mark.parametrize(
    "records",
    [
        [(fmt.Kind.ENTRY, 2, 1, 0, b"")],  # a gap before the first entry
        [(fmt.Kind.ENTRY, 1, 2, 0, b""), (fmt.Kind.ENTRY, 2, 1, 0, b"")],  # a term going back
        [(fmt.Kind.TRUNCATE, 5, 0, 0, b"")],  # of what is not there
        [(fmt.Kind.BASE, 5, 1, 0, b"")],
        [(fmt.Kind.STATE, 0, 5, 0, b""), (fmt.Kind.STATE, 0, 4, 0, b"")],
        [(fmt.Kind.STATE, 0, 5, 1, b"a"), (fmt.Kind.STATE, 0, 5, 1, b"b")],  # two votes
        [(fmt.Kind.TABLE, 0, 0, 0, fmt.encode_table([]))],  # in the middle of a file
        [(99, 0, 0, 0, b"")],
    ],
)
def test_valid_records_in_an_impossible_order_are_damage(
    folder: str, records: list[tuple[int, int, int, int, bytes]]
) -> None:
    desk = JournalDesk(DISK, folder)
    desk.journal.group(3)
    desk.close()  # table and mark: the next sequence number is 3
    epoch = fmt.parse_file_header(_content(folder, 1), path="").epoch
    position = fmt.FILE_HEADER_BYTES + fmt.record_bytes(fmt.table_bytes(1, 0))
    position += fmt.record_bytes(0)
    waiting = [
        (3 + at, index, term, 3, kind, flags, payload)
        for at, (kind, index, term, flags, payload) in enumerate(records)
    ]
    file = DISK.open(path_of(folder, 1))
    journal_file.write_batch(file, position, waiting, epoch=epoch, durable=2)
    file.close()
    assert damage(folder).path == path_of(folder, 1)


def test_half_made_files_and_surplus_spares_are_cleared(folder: str) -> None:
    grown(folder).close()
    for name in ("9.new", "0000000000000007.spare", "0000000000000008.spare"):
        file = DISK.open(f"{folder}/{name}", create=True)
        file.truncate(SMALL.file_bytes)
        file.close()
    JournalDesk(DISK, folder)
    left = [name for name in DISK.names(folder) if not name.endswith(".journal")]
    assert len(left) <= SMALL.spare_files_max


def test_disk_error_while_opening_names_the_folder(tmp_path: object) -> None:
    file = DISK.open(f"{tmp_path}/journal", create=True)
    file.close()
    with pytest.raises(errors.StorageError, match="journal"):
        JournalDesk(DISK, f"{tmp_path}/journal")


def test_power_cut_while_unused_files_are_put_aside_leaves_no_gap() -> None:
    for seed in range(4):
        for point in range(1, 12):
            disk = new_disk(seed * 100 + point)
            disk.make_folder("data")
            disk.sync_folder("")
            desk = JournalDesk(disk, "data/journal")
            fill(desk, 1, count=60, size=1000)  # laid out over five files
            desk.scheduler.turn()
            desk.helper.drain()  # all of them made, none written but the first
            desk.writer.step()
            durable = desk.journal.group(1).durable_index
            assert 0 < durable < 20
            disk = reboot(disk)
            disk.volume.crash_at(point)
            with contextlib.suppress(SimCrash):
                JournalDesk(disk, "data/journal")
            again = JournalDesk(reboot(disk), "data/journal")
            assert again.journal.group(1).last_index == durable
