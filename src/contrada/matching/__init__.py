"""Who receives this event: the engines that find the satisfied subscriptions.

This room knows subscriptions and events in memory; no file, clock, thread or Spark.
"""
