"""What two processes must agree on: layouts, limits, configuration and errors."""
