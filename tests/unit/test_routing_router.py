"""Router: the way through exchanges, what a change does to it, what a route needs to look at."""

import gc
import weakref

import pytest

from lograft_broker.routing.matcher import Needs
from lograft_broker.routing.router import Router
from lograft_log.env import RealRng
from lograft_wire.amqp import fields
from lograft_wire.amqp.fields import Table

VHOST = "/"


def build(*exchanges: str, queues: str = "") -> Router[str]:
    """Exchanges as "name:kind" or "name:kind:alternate", queues by letter."""
    router = Router[str](rng=RealRng())
    router.add_vhost(VHOST)
    for text in exchanges:
        name, kind, *alternate = text.split(":")
        router.add_exchange(VHOST, name, kind=kind, alternate=alternate[0] if alternate else None)
    for queue in queues:
        router.add_queue(VHOST, queue, queue)
    return router


def bind(router: Router[str], *links: str) -> None:
    """Links as "source>queue", "source>queue:key" or "source>>exchange:key"."""
    for link in links:
        ends, _, key = link.partition(":")
        source, destination = ends.split(">", 1)
        router.bind(
            VHOST,
            source=source,
            destination=destination.removeprefix(">"),
            to_exchange=destination.startswith(">"),
            key=key.encode(),
        )


def targets(router: Router[str], exchange: str, key: bytes = b"") -> tuple[str, ...]:
    routed = router.route(VHOST, exchange, key)
    assert routed is not None
    assert routed.matched == bool(routed.targets)
    assert len(routed.targets) == len(set(routed.targets))
    return tuple(sorted(routed.targets))


def test_a_missing_exchange_is_not_the_same_as_no_queue() -> None:
    router = build("x:direct")
    assert router.route(VHOST, "nosuch", b"") is None
    assert router.route("nosuch", "x", b"") is None
    assert router.route_many(VHOST, "nosuch", [b""]) is None
    routed = router.route(VHOST, "x", b"")
    assert routed is not None
    assert (routed.targets, routed.matched, routed.delayed) == ((), False, False)


def test_the_default_exchange_knows_queues_by_name() -> None:
    router = build(queues="ab")
    router.add_queue(VHOST, "naïve", "naïve")
    assert targets(router, "", b"a") == ("a",)
    assert targets(router, "", "naïve".encode()) == ("naïve",)
    assert targets(router, "", b"\xff") == ()
    router.add_queue(VHOST, "\udcff", "not UTF-8")
    assert targets(router, "", b"\xff") == ("not UTF-8",)
    router.remove_queue(VHOST, "a")
    assert targets(router, "", b"a") == ()


def test_vhosts_do_not_see_each_other() -> None:
    router = build("x:fanout", queues="a")
    bind(router, "x>a")
    router.add_vhost("other")
    router.add_exchange("other", "x", kind="fanout")
    routed = router.route("other", "x", b"")
    assert routed is not None
    assert routed.targets == ()
    router.remove_vhost(VHOST)
    assert router.route(VHOST, "x", b"") is None
    assert router.route(VHOST, "", b"a") is None


def test_direct_topic_and_fanout() -> None:
    router = build("d:direct", "t:topic", "f:fanout", queues="abc")
    bind(router, "d>a:one", "d>b:one", "d>c:two", "t>a:one.*", "t>b:#", "f>a:x", "f>c")
    assert targets(router, "d", b"one") == ("a", "b")
    assert targets(router, "d", b"three") == ()
    assert targets(router, "t", b"one.two") == ("a", "b")
    assert targets(router, "t", b"") == ("b",)
    assert targets(router, "f", b"whatever") == ("a", "c")


def test_targets_are_the_objects_given() -> None:
    router = Router[object](rng=RealRng())
    router.add_vhost(VHOST)
    target = object()
    router.add_queue(VHOST, "a", target)
    routed = router.route(VHOST, "", b"a")
    assert routed is not None
    assert routed.targets[0] is target


def test_a_fanout_does_not_list_its_queues_for_each_message() -> None:
    router = build("x:fanout")
    for number in range(10_000):
        router.add_queue(VHOST, f"q{number}", f"q{number}")
        router.bind(VHOST, source="x", destination=f"q{number}")
    first, second = router.route(VHOST, "x", b"1"), router.route(VHOST, "x", b"2")
    assert first is not None
    assert second is not None
    assert len(first.targets) == 10_000
    assert first.targets is second.targets


def test_bindings_between_exchanges_are_followed_and_a_queue_is_named_once() -> None:
    router = build("x:direct", "y:topic", "z:fanout", queues="abc")
    bind(router, "x>>y:a.b", "x>>z:a.b", "x>a:a.b", "y>a:a.*", "y>b:*.b", "z>b", "z>c")
    assert targets(router, "x", b"a.b") == ("a", "b", "c")
    assert targets(router, "x", b"a.c") == ()


def test_cycles_of_exchanges_end() -> None:
    router = build("x:fanout", "y:fanout", "z:fanout", queues="ab")
    bind(router, "x>>y", "y>>z", "z>>x", "x>>x", "y>a", "z>b")
    for start in "xyz":
        assert targets(router, start) == ("a", "b")


def test_the_alternate_takes_what_nothing_bound_wants() -> None:
    router = build("x:direct:other", "other:fanout", queues="ab")
    bind(router, "x>a:key", "other>b")
    assert targets(router, "x", b"key") == ("a",)
    assert targets(router, "x", b"lost") == ("b",)


def test_alternates_form_chains_and_cycles() -> None:
    router = build("x:direct:y", "y:direct:z", "z:direct:x", queues="a")
    assert targets(router, "x", b"key") == ()
    bind(router, "z>a:key")
    assert targets(router, "x", b"key") == ("a",)
    assert targets(router, "y", b"key") == ("a",)


def test_an_alternate_that_does_not_exist_is_no_error() -> None:
    router = build("x:direct:later", queues="a")
    assert targets(router, "x", b"key") == ()
    router.add_exchange(VHOST, "later", kind="fanout")
    bind(router, "later>a")
    assert targets(router, "x", b"key") == ("a",)
    router.remove_exchange(VHOST, "later")
    assert targets(router, "x", b"key") == ()


def test_a_binding_to_an_exchange_counts_though_nothing_lies_behind_it() -> None:
    """Wanted by an exchange is wanted: only the next one's own alternate is asked."""
    router = build("x:direct:other", "dead:direct", "other:fanout", queues="a")
    bind(router, "x>>dead:key", "other>a")
    assert targets(router, "x", b"key") == ()
    router.set_alternate(VHOST, "dead", "other")
    assert targets(router, "x", b"key") == ("a",)


def test_an_alternate_can_be_changed_and_taken_away() -> None:
    router = build("x:direct", "one:fanout", "two:fanout", queues="ab")
    bind(router, "one>a", "two>b")
    assert targets(router, "x") == ()
    router.set_alternate(VHOST, "x", "one")
    assert targets(router, "x") == ("a",)
    router.set_alternate(VHOST, "x", "two")
    assert targets(router, "x") == ("b",)
    router.set_alternate(VHOST, "x", None)
    assert targets(router, "x") == ()


def test_several_keys_lead_to_the_union() -> None:
    router = build("d:direct", "t:topic", queues="abcd")
    bind(router, "d>a:one", "d>b:two", "d>>t:three", "t>c:#", "t>a:one", "t>d:no")
    routed = router.route_many(VHOST, "d", [b"one", b"two", b"three"])
    assert routed is not None
    assert sorted(routed.targets) == ["a", "b", "c"]
    routed = router.route_many(VHOST, "", [b"a", b"nosuch", b"d", b"a"])
    assert routed is not None
    assert sorted(routed.targets) == ["a", "d"]


def test_with_several_keys_the_alternate_is_for_when_none_leads_anywhere() -> None:
    router = build("x:direct:other", "other:fanout", queues="ab")
    bind(router, "x>a:key", "other>b")
    routed = router.route_many(VHOST, "x", [b"lost", b"key"])
    assert routed is not None
    assert routed.targets == ("a",)
    routed = router.route_many(VHOST, "x", [b"lost", b"too"])
    assert routed is not None
    assert routed.targets == ("b",)


def test_a_hash_exchange_looks_at_the_first_key_only() -> None:
    router = build("x:x-consistent-hash", queues="abcdefgh")
    bind(router, *(f"x>{queue}:1" for queue in "abcdefgh"))
    for key in (b"one", b"two", b"three"):
        alone = router.route(VHOST, "x", key)
        assert alone is not None
        assert len(alone.targets) == 1
        assert router.route_many(VHOST, "x", [key, b"other", b"more"]) == alone


def test_an_exchange_can_be_the_one_a_hash_chooses() -> None:
    router = build("x:x-consistent-hash", "y:fanout", queues="ab")
    bind(router, "x>>y:1", "y>a", "y>b")
    assert targets(router, "x", b"any") == ("a", "b")


def test_delayed_exchanges_route_as_their_kind_and_say_so() -> None:
    router = build(queues="ab")
    router.add_exchange(
        VHOST, "later", kind="x-delayed-message", arguments={"x-delayed-type": "topic"}
    )
    bind(router, "later>a:one.*", "later>b:two")
    routed = router.route(VHOST, "later", b"one.two")
    assert routed is not None
    assert (routed.targets, routed.delayed_targets, routed.delayed) == (("a",), ("a",), True)
    routed = router.route(VHOST, "later", b"lost")
    assert routed is not None
    assert (routed.matched, routed.delayed) == (False, False)


def test_only_queues_behind_the_delayed_exchange_wait() -> None:
    router = build("x:fanout", "y:fanout", "z:fanout", queues="abcd")
    router.add_exchange(
        VHOST, "later", kind="x-delayed-message", arguments={"x-delayed-type": "fanout"}
    )
    bind(router, "x>>later", "x>a", "later>b", "later>a", "later>>y", "y>c", "x>>z", "z>d")
    routed = router.route(VHOST, "x", b"")
    assert routed is not None
    assert sorted(routed.targets) == ["a", "b", "c", "d"]
    assert sorted(routed.delayed_targets) == ["b", "c"]
    bind(router, "z>>y")
    routed = router.route(VHOST, "x", b"")
    assert routed is not None
    assert routed.delayed_targets == ("b",)


def test_what_a_delayed_exchange_passes_to_its_alternate_is_delayed() -> None:
    router = build("other:fanout", queues="a")
    router.add_exchange(
        VHOST,
        "later",
        kind="x-delayed-message",
        arguments={"x-delayed-type": "direct"},
        alternate="other",
    )
    bind(router, "other>a")
    routed = router.route(VHOST, "later", b"lost")
    assert routed is not None
    assert routed.delayed_targets == ("a",)


def test_a_queue_that_goes_takes_its_bindings_along() -> None:
    router = build("x:fanout", "t:topic", "h:headers", "c:x-consistent-hash", queues="ab")
    bind(router, "x>a", "x>b", "t>a:#", "h>a", "c>a:1", "c>b:1")
    router.remove_queue(VHOST, "a")
    assert targets(router, "x") == ("b",)
    assert targets(router, "t") == ()
    assert targets(router, "h") == ()
    assert targets(router, "c", b"any") == ("b",)
    router.add_queue(VHOST, "a", "a")
    assert targets(router, "x") == ("b",)


def test_an_exchange_that_goes_takes_its_bindings_along() -> None:
    router = build("x:fanout", "y:fanout", queues="ab")
    bind(router, "x>>y", "y>>x", "y>a", "x>b")
    router.remove_exchange(VHOST, "y")
    assert targets(router, "x") == ("b",)
    router.add_exchange(VHOST, "y", kind="fanout")
    assert targets(router, "y") == ()
    assert targets(router, "x") == ("b",)


def test_what_was_bound_to_an_exchange_that_went_goes_to_the_alternate() -> None:
    router = build("x:fanout:other", "other:fanout", "y:fanout", queues="ab")
    bind(router, "x>>y", "y>a", "other>b")
    assert targets(router, "x") == ("a",)
    router.remove_exchange(VHOST, "y")
    assert targets(router, "x") == ("b",)


def test_one_of_two_bindings_to_exchanges_that_goes_leaves_the_other_to_be_followed() -> None:
    router = build("x:direct", "y:fanout", queues="a")
    bind(router, "x>>y:one", "x>>y:two", "y>a")
    router.unbind(VHOST, source="x", destination="y", to_exchange=True, key=b"one")
    assert targets(router, "x", b"one") == ()
    assert targets(router, "x", b"two") == ("a",)


def test_what_is_gone_is_forgotten() -> None:
    """Nothing is held by what it was bound to, or by what was bound to it."""

    class Target:
        pass

    router = Router[Target](rng=RealRng())
    router.add_vhost(VHOST)
    router.add_exchange(VHOST, "stays", kind="fanout")
    router.add_queue(VHOST, "stays", Target())
    router.add_exchange(VHOST, "goes", kind="topic")
    target = Target()
    router.add_queue(VHOST, "goes", target)
    matcher_gone = weakref.ref(router._vhosts[VHOST].exchanges["goes"].matcher)
    target_gone = weakref.ref(target)
    for source in ("stays", "goes"):
        for destination in ("stays", "goes"):
            router.bind(VHOST, source=source, destination=destination)
            router.bind(VHOST, source=source, destination=destination, to_exchange=True)
    router.needs(VHOST, "goes")
    del target
    router.remove_exchange(VHOST, "goes")
    router.remove_queue(VHOST, "goes")
    gc.collect()
    assert (matcher_gone(), target_gone()) == (None, None)


def test_bindings_that_come_and_go_leave_nothing_behind() -> None:
    router = build("x:fanout", "y:fanout", queues="a")
    bind(router, "x>>y", "x>a")
    for end, to_exchange in (("y", True), ("a", False)):
        router.unbind(VHOST, source="x", destination=end, to_exchange=to_exchange)
    vhost = router._vhosts[VHOST]
    assert not vhost.exchanges["y"].incoming
    assert len(vhost.queues["a"].incoming) == 1  # from the default exchange
    assert not vhost.exchanges["x"].exchanges
    assert vhost.exchanges["x"].plain


def test_bindings_that_differ_in_arguments_only_are_two() -> None:
    router = build("x:direct", queues="a")
    some: list[Table] = [
        {},
        {"n": fields.Int32(1)},
        {"n": fields.Int64(1)},
        {"n": fields.Long64(1)},
        {"n": [1, {"b": None}]},
    ]
    for arguments in some:
        router.bind(VHOST, source="x", destination="a", key=b"key", arguments=arguments)
    for arguments in some:
        assert targets(router, "x", b"key") == ("a",)
        router.unbind(VHOST, source="x", destination="a", key=b"key", arguments=arguments)
    assert targets(router, "x", b"key") == ()


def test_a_binding_made_twice_is_one() -> None:
    router = build("x:direct", queues="a")
    bind(router, "x>a:key", "x>a:key")
    router.unbind(VHOST, source="x", destination="a", key=b"key")
    assert targets(router, "x", b"key") == ()


def test_what_the_caller_does_to_its_arguments_later_does_not_matter() -> None:
    router = build("x:headers", queues="a")
    arguments: dict[str, fields.Value] = {"x-ignored": 1}
    router.bind(VHOST, source="x", destination="a", arguments=arguments)
    arguments["x-match"] = "any"
    assert targets(router, "x") == ("a",)
    router.unbind(VHOST, source="x", destination="a", arguments={"x-ignored": 1})
    assert targets(router, "x") == ()


def test_an_exchange_and_a_queue_of_one_name_are_two_destinations() -> None:
    router = build("x:fanout", "a:fanout", queues="ab")
    bind(router, "x>a", "x>>a", "a>b")
    assert targets(router, "x") == ("a", "b")
    router.unbind(VHOST, source="x", destination="a")
    assert targets(router, "x") == ("b",)


def test_every_change_and_nothing_else_raises_the_epoch() -> None:
    router = build("x:direct", "y:fanout", queues="a")
    epoch = router.epoch

    def changed() -> bool:
        nonlocal epoch
        before, epoch = epoch, router.epoch
        return epoch > before

    bind(router, "x>a:key")
    assert changed()
    bind(router, "x>a:key")
    router.unbind(VHOST, source="x", destination="a", key=b"nosuch")
    router.unbind(VHOST, source="nosuch", destination="a")
    router.unbind(VHOST, source="x", destination="nosuch")
    router.remove_queue(VHOST, "nosuch")
    router.remove_exchange(VHOST, "nosuch")
    router.remove_vhost("nosuch")
    router.route(VHOST, "x", b"key")
    router.needs(VHOST, "x")
    assert not changed()
    router.unbind(VHOST, source="x", destination="a", key=b"key")
    assert changed()
    router.set_alternate(VHOST, "x", "y")
    assert changed()
    router.remove_exchange(VHOST, "y")
    assert changed()
    router.remove_queue(VHOST, "a")
    assert changed()
    router.remove_vhost(VHOST)
    assert changed()


def test_headers_are_needed_wherever_the_way_may_lead_to_an_exchange_that_looks() -> None:
    router = build("x:direct", "y:topic:z", "z:fanout", "h:headers", "q:direct", queues="a")
    assert not router.needs_headers(VHOST, "x")
    assert router.needs_headers(VHOST, "h")
    bind(router, "x>>y:key", "z>>h")
    assert all(router.needs_headers(VHOST, name) for name in "xyzh")
    assert not router.needs_headers(VHOST, "q")
    assert not router.needs_headers(VHOST, "")
    router.set_alternate(VHOST, "y", None)
    assert not router.needs_headers(VHOST, "x")
    router.set_alternate(VHOST, "y", "nosuch")
    assert not router.needs_headers(VHOST, "y")
    assert not router.needs_headers(VHOST, "nosuch")


def test_needs_tell_headers_from_properties_from_chance() -> None:
    router = build("r:x-random", "f:fanout")
    router.add_exchange(VHOST, "h", kind="x-consistent-hash", arguments={"hash-header": "a"})
    router.add_exchange(
        VHOST, "p", kind="x-consistent-hash", arguments={"hash-property": "message_id"}
    )
    assert router.needs(VHOST, "f").keys_only
    assert router.needs(VHOST, "h") == Needs(headers=True)
    assert router.needs(VHOST, "p") == Needs(properties=True)
    assert router.needs(VHOST, "r") == Needs(chance=True)
    bind(router, "f>>h", "f>>p", "f>>r")
    assert router.needs(VHOST, "f") == Needs(headers=True, properties=True, chance=True)
    assert not router.needs(VHOST, "f").keys_only


def test_headers_reach_the_exchange_that_looks_at_them() -> None:
    router = build("x:fanout", "h:headers", queues="ab")
    router.bind(VHOST, source="h", destination="a", arguments={"kind": "report"})
    bind(router, "x>>h", "x>b")
    routed = router.route(VHOST, "x", b"", {"kind": "report"})
    assert routed is not None
    assert sorted(routed.targets) == ["a", "b"]
    routed = router.route_many(VHOST, "h", [b"", b"cc"], {"kind": "report"})
    assert routed is not None
    assert routed.targets == ("a",)


def test_mistakes_of_the_caller_are_asserted() -> None:
    router = build("x:fanout", queues="a")
    with pytest.raises(AssertionError):
        router.add_vhost(VHOST)
    with pytest.raises(AssertionError):
        router.add_exchange(VHOST, "x", kind="direct")
    with pytest.raises(AssertionError):
        router.add_exchange(VHOST, "y", kind="nosuch")
    with pytest.raises(AssertionError):
        router.add_queue(VHOST, "a", "again")
    with pytest.raises(AssertionError):
        router.bind(VHOST, source="x", destination="nosuch")
    with pytest.raises(AssertionError):
        router.remove_exchange(VHOST, "")
