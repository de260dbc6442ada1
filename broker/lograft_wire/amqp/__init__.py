"""AMQP 0-9-1 as bytes and values, with RabbitMQ's extensions; for the broker and the client."""
