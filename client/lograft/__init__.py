"""The Python SDK and the lograft command."""
