"""The nouns: event, constraint, filter, predicate, subscription, relation.

This room knows values only: no file, no clock, no thread, no compiled code of our own.
"""
