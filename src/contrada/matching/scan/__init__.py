"""The engine `scan`: no index; every predicate is asked about every event."""
