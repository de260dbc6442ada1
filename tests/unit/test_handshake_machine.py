"""Two handshakes face to face, without sockets: who gets through, and what the others hear."""

import itertools

import pytest

from lograft_replication import handshake
from lograft_replication.handshake import Handshake, Identity, Role
from support.link_nodes import SECRET, identity

ALICE = identity("alice", boot=b"A" * 16)
BOB = identity("bob", boot=b"B" * 16)
_nonces = itertools.count(1)


def side(role: Role, me: Identity, *, secret: bytes = SECRET, refuse: str = "") -> Handshake:
    nonce = next(_nonces).to_bytes(handshake.NONCE_BYTES, "little")
    return Handshake(role, me, secret=secret, nonce=nonce, judge=lambda _: refuse)


def dialler(secret: bytes = SECRET, refuse: str = "") -> Handshake:
    return side(Role.DIALLER, ALICE, secret=secret, refuse=refuse)


def listener(secret: bytes = SECRET, refuse: str = "") -> Handshake:
    return side(Role.LISTENER, BOB, secret=secret, refuse=refuse)


def talk(one: Handshake, other: Handshake, *, step: int = 4096) -> tuple[bytes, bytes]:
    """Carry bytes both ways, `step` at a time, until nobody has more to say; what each said."""
    said_one, said_other = one.start(), b""
    to_other, to_one = said_one, b""
    while to_other or to_one:
        piece, to_other = to_other[:step], to_other[step:]
        if piece and not (other.done or other.failed):
            reply = other.receive(piece)
            said_other += reply
            to_one += reply
        piece, to_one = to_one[:step], to_one[step:]
        if piece and not (one.done or one.failed):
            reply = one.receive(piece)
            said_one += reply
            to_other += reply
    return said_one, said_other


@pytest.mark.parametrize("step", [1, 2, 7, 4096])
def test_both_sides_learn_who_the_other_is(step: int) -> None:
    one, other = dialler(), listener()
    talk(one, other, step=step)
    assert (one.done, other.done) == (True, True)
    assert (one.peer, other.peer) == (BOB, ALICE)
    assert (one.rest, other.rest) == (b"", b"")


def test_bytes_behind_the_handshake_are_kept_for_the_frames() -> None:
    one, other = dialler(), listener()
    proof = one.receive(other.receive(one.start()))
    last = other.receive(proof + b"early")
    assert other.rest == b"early"
    one.receive(last + b"frames")
    assert one.done
    assert one.rest == b"frames"


def test_different_secrets_are_refused_in_general_words() -> None:
    one, other = dialler(secret=b"x" * 32), listener()
    _, said = talk(one, other)
    assert "secrets differ" in other.failure
    assert "the log of the refusing node" in one.failure
    assert b"secret" not in said


def test_a_listener_with_another_secret_never_gets_through_to_the_dialler() -> None:
    one, impostor = dialler(), listener(secret=b"x" * 32)
    assert one.receive(impostor.receive(one.start()))
    one.receive(handshake.RECORD.pack(handshake.PROOF, 32) + bytes(32))
    assert "secrets differ" in one.failure


def test_a_proven_peer_hears_the_true_reason() -> None:
    one, other = dialler(), listener(refuse="name 'alice' is not among the peers")
    talk(one, other)
    assert other.failure == "name 'alice' is not among the peers"
    assert "not among the peers" in one.failure


def test_a_dialler_refuses_before_it_shows_a_proof() -> None:
    one, other = dialler(refuse="the cluster differs"), listener(refuse="seen from here too")
    said, _ = talk(one, other)
    assert "the cluster differs" in one.failure
    assert b"cluster differs" not in said
    assert "seen from here too" in other.failure
    proof_record = handshake.RECORD.pack(handshake.PROOF, handshake.PROOF_BYTES)
    assert proof_record not in said


def test_a_recorded_dialler_does_not_get_through_again() -> None:
    one = dialler()
    recorded, _ = talk(one, listener())
    assert one.done
    victim = listener()
    victim.receive(recorded)
    assert "secrets differ" in victim.failure


def test_a_recorded_listener_does_not_get_through_again() -> None:
    one = dialler()
    _, recorded = talk(one, listener())
    assert one.done
    victim = dialler()
    victim.receive(recorded)
    assert "secrets differ" in victim.failure


def test_a_reflected_proof_is_refused() -> None:
    one, other = dialler(), listener()
    proof = one.receive(other.receive(one.start()))
    one.receive(proof)
    assert "secrets differ" in one.failure


def test_every_bit_of_a_proof_counts() -> None:
    for bit in range(handshake.PROOF_BYTES * 8):
        one, other = dialler(), listener()
        proof = bytearray(one.receive(other.receive(one.start())))
        proof[handshake.RECORD.size + bit // 8] ^= 1 << bit % 8
        other.receive(bytes(proof))
        assert "secrets differ" in other.failure, bit


def test_a_changed_hello_breaks_the_proof() -> None:
    one, other = dialler(), listener()
    changed = one.start().replace(b"alice", b"mally")
    proof = one.receive(other.receive(changed))
    other.receive(proof)
    assert "secrets differ" in other.failure


def test_another_protocol_gets_no_answer() -> None:
    other = listener()
    assert other.receive(b"GET / HTTP/1.1\r\n") == b""
    assert "magic" in other.failure


def test_another_version_is_refused_and_told_so_in_our_own_preamble() -> None:
    other = listener()
    reply = other.receive(handshake.PREAMBLE.pack(handshake.MAGIC, 9))
    assert "version 9" in other.failure
    assert handshake.PREAMBLE.unpack_from(reply) == (handshake.MAGIC, handshake.VERSION)
    one = dialler()
    one.receive(reply)
    assert "refused by the other side" in one.failure


def test_an_oversize_record_is_refused_by_its_length_alone() -> None:
    other = listener()
    other.receive(handshake.PREAMBLE.pack(handshake.MAGIC, handshake.VERSION))
    other.receive(handshake.RECORD.pack(handshake.HELLO, 60000))
    assert "length 60000" in other.failure


def test_records_out_of_turn_are_refused() -> None:
    other = listener()
    preamble = handshake.PREAMBLE.pack(handshake.MAGIC, handshake.VERSION)
    other.receive(preamble + handshake.RECORD.pack(handshake.PROOF, 0))
    assert "type 2 while waiting for hello" in other.failure
    one = dialler()
    hello = listener().receive(dialler().start())
    one.receive(hello)
    one.receive(hello[handshake.PREAMBLE.size :])
    assert "type 1 while waiting for proof" in one.failure


def test_every_cut_or_stretched_hello_is_refused() -> None:
    whole = dialler().start()
    preamble, body = whole[: handshake.PREAMBLE.size], whole[handshake.PREAMBLE.size + 3 :]
    for wrong in [body[:size] for size in range(len(body))] + [body + b"\0"]:
        other = listener()
        other.receive(preamble + handshake.RECORD.pack(handshake.HELLO, len(wrong)) + wrong)
        assert other.failed, len(wrong)


@pytest.mark.parametrize("name", [b"", b"a@b", b"\xff"])
def test_impossible_names_are_refused(name: bytes) -> None:
    body = bytes([len(name)]) + name + bytes(32) + b"\0" + bytes(32)
    preamble = handshake.PREAMBLE.pack(handshake.MAGIC, handshake.VERSION)
    other = listener()
    other.receive(preamble + handshake.RECORD.pack(handshake.HELLO, len(body)) + body)
    assert "name" in other.failure


def test_a_node_id_is_name_and_incarnation() -> None:
    assert identity("n", incarnation=b"\x01" * 16).node_id == "n@" + "01" * 16
