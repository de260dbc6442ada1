"""Methods of the classes exchange and queue. Use them from `methods`.

`reserved_ticket` was access control in AMQP 0-8; clients send 0 or 1, and nobody reads it.
"""

from dataclasses import field

from lograft_wire.amqp.layouts import Bit, Long, Method, Short, ShortString, Table, method

__all__ = [
    "ExchangeBind",
    "ExchangeBindOk",
    "ExchangeDeclare",
    "ExchangeDeclareOk",
    "ExchangeDelete",
    "ExchangeDeleteOk",
    "ExchangeUnbind",
    "ExchangeUnbindOk",
    "QueueBind",
    "QueueBindOk",
    "QueueDeclare",
    "QueueDeclareOk",
    "QueueDelete",
    "QueueDeleteOk",
    "QueuePurge",
    "QueuePurgeOk",
    "QueueUnbind",
    "QueueUnbindOk",
]


@method(40, 10, "exchange.declare")
class ExchangeDeclare(Method):
    reserved_ticket: Short = 0
    exchange: ShortString
    type: ShortString = "direct"
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    internal: Bit = False
    no_wait: Bit = False
    arguments: Table = field(default_factory=dict)


@method(40, 11, "exchange.declare-ok")
class ExchangeDeclareOk(Method):
    pass


@method(40, 20, "exchange.delete")
class ExchangeDelete(Method):
    reserved_ticket: Short = 0
    exchange: ShortString
    if_unused: Bit = False
    no_wait: Bit = False


@method(40, 21, "exchange.delete-ok")
class ExchangeDeleteOk(Method):
    pass


@method(40, 30, "exchange.bind")
class ExchangeBind(Method):
    reserved_ticket: Short = 0
    destination: ShortString
    source: ShortString
    routing_key: ShortString = ""
    no_wait: Bit = False
    arguments: Table = field(default_factory=dict)


@method(40, 31, "exchange.bind-ok")
class ExchangeBindOk(Method):
    pass


@method(40, 40, "exchange.unbind")
class ExchangeUnbind(Method):
    reserved_ticket: Short = 0
    destination: ShortString
    source: ShortString
    routing_key: ShortString = ""
    no_wait: Bit = False
    arguments: Table = field(default_factory=dict)


@method(40, 51, "exchange.unbind-ok")  # 51 and not 41: so it was published, and so it stays
class ExchangeUnbindOk(Method):
    pass


@method(50, 10, "queue.declare")
class QueueDeclare(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""  # empty: the server chooses
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    no_wait: Bit = False
    arguments: Table = field(default_factory=dict)


@method(50, 11, "queue.declare-ok")
class QueueDeclareOk(Method):
    queue: ShortString
    message_count: Long
    consumer_count: Long


@method(50, 20, "queue.bind")
class QueueBind(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""  # empty, here and below: the one last declared on this channel
    exchange: ShortString
    routing_key: ShortString = ""
    no_wait: Bit = False
    arguments: Table = field(default_factory=dict)


@method(50, 21, "queue.bind-ok")
class QueueBindOk(Method):
    pass


@method(50, 30, "queue.purge")
class QueuePurge(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""
    no_wait: Bit = False


@method(50, 31, "queue.purge-ok")
class QueuePurgeOk(Method):
    message_count: Long


@method(50, 40, "queue.delete")
class QueueDelete(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""
    if_unused: Bit = False
    if_empty: Bit = False
    no_wait: Bit = False


@method(50, 41, "queue.delete-ok")
class QueueDeleteOk(Method):
    message_count: Long


@method(50, 50, "queue.unbind")
class QueueUnbind(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""
    exchange: ShortString
    routing_key: ShortString = ""
    arguments: Table = field(default_factory=dict)


@method(50, 51, "queue.unbind-ok")
class QueueUnbindOk(Method):
    pass
