"""Methods of the classes basic, confirm and tx. Use them from `methods`.

The routing key of a message is raw: publishers may send any bytes, and consumers get them back.
`reserved_ticket` was access control in AMQP 0-8; clients send 0 or 1, and nobody reads it.
"""

from dataclasses import field

from lograft_wire.amqp.layouts import (
    Bit,
    Long,
    LongLong,
    Method,
    RawString,
    Short,
    ShortString,
    Table,
    method,
)

__all__ = [
    "BasicAck",
    "BasicCancel",
    "BasicCancelOk",
    "BasicConsume",
    "BasicConsumeOk",
    "BasicDeliver",
    "BasicGet",
    "BasicGetEmpty",
    "BasicGetOk",
    "BasicNack",
    "BasicPublish",
    "BasicQos",
    "BasicQosOk",
    "BasicRecover",
    "BasicRecoverAsync",
    "BasicRecoverOk",
    "BasicReject",
    "BasicReturn",
    "ConfirmSelect",
    "ConfirmSelectOk",
    "TxCommit",
    "TxCommitOk",
    "TxRollback",
    "TxRollbackOk",
    "TxSelect",
    "TxSelectOk",
]


@method(60, 10, "basic.qos")
class BasicQos(Method):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    global_: Bit = False


@method(60, 11, "basic.qos-ok")
class BasicQosOk(Method):
    pass


@method(60, 20, "basic.consume")
class BasicConsume(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""
    consumer_tag: ShortString = ""  # empty: the server chooses
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    no_wait: Bit = False
    arguments: Table = field(default_factory=dict)


@method(60, 21, "basic.consume-ok")
class BasicConsumeOk(Method):
    consumer_tag: ShortString


@method(60, 30, "basic.cancel")
class BasicCancel(Method):
    """From the client, or from the server when the queue is gone."""

    consumer_tag: ShortString
    no_wait: Bit = False


@method(60, 31, "basic.cancel-ok")
class BasicCancelOk(Method):
    consumer_tag: ShortString


@method(60, 40, "basic.publish", has_content=True)
class BasicPublish(Method):
    reserved_ticket: Short = 0
    exchange: ShortString = ""
    routing_key: RawString = ""
    mandatory: Bit = False
    immediate: Bit = False


@method(60, 50, "basic.return", has_content=True)
class BasicReturn(Method):
    reply_code: Short
    reply_text: ShortString = ""
    exchange: ShortString
    routing_key: RawString


@method(60, 60, "basic.deliver", has_content=True)
class BasicDeliver(Method):
    consumer_tag: ShortString
    delivery_tag: LongLong
    redelivered: Bit = False
    exchange: ShortString
    routing_key: RawString


@method(60, 70, "basic.get")
class BasicGet(Method):
    reserved_ticket: Short = 0
    queue: ShortString = ""
    no_ack: Bit = False


@method(60, 71, "basic.get-ok", has_content=True)
class BasicGetOk(Method):
    delivery_tag: LongLong
    redelivered: Bit = False
    exchange: ShortString
    routing_key: RawString
    message_count: Long


@method(60, 72, "basic.get-empty")
class BasicGetEmpty(Method):
    reserved_cluster_id: ShortString = ""


@method(60, 80, "basic.ack")
class BasicAck(Method):
    """From a consumer for a delivery, or from the server for a publish (confirm)."""

    delivery_tag: LongLong
    multiple: Bit = False


@method(60, 90, "basic.reject")
class BasicReject(Method):
    delivery_tag: LongLong
    requeue: Bit = True


@method(60, 100, "basic.recover-async")
class BasicRecoverAsync(Method):
    requeue: Bit = False


@method(60, 110, "basic.recover")
class BasicRecover(Method):
    requeue: Bit = False


@method(60, 111, "basic.recover-ok")
class BasicRecoverOk(Method):
    pass


@method(60, 120, "basic.nack")
class BasicNack(Method):
    """From a consumer for a delivery, or from the server for a publish (confirm)."""

    delivery_tag: LongLong
    multiple: Bit = False
    requeue: Bit = True


@method(85, 10, "confirm.select")
class ConfirmSelect(Method):
    no_wait: Bit = False


@method(85, 11, "confirm.select-ok")
class ConfirmSelectOk(Method):
    pass


@method(90, 10, "tx.select")
class TxSelect(Method):
    pass


@method(90, 11, "tx.select-ok")
class TxSelectOk(Method):
    pass


@method(90, 20, "tx.commit")
class TxCommit(Method):
    pass


@method(90, 21, "tx.commit-ok")
class TxCommitOk(Method):
    pass


@method(90, 30, "tx.rollback")
class TxRollback(Method):
    pass


@method(90, 31, "tx.rollback-ok")
class TxRollbackOk(Method):
    pass
