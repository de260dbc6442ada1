"""The server: its edges, routing, queues and topics."""
