"""When objects enter, leave, cross and stay in what matches: a state machine without I/O.

`taking_in.begin` takes a batch of positions in, `deciding.finish` decides with what its caller has
matched in between; `track_state.TrackState` is all that is remembered from one batch to the next.
This room knows no file, clock, thread, matcher or Spark.
"""
