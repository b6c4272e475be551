"""The durable log, cursors and deliveries: SQLite and the matcher, no HTTP."""
