"""The tables that a log has for webhooks.

`webhooks` has a row for each subscriber that is called: `secrets` is a list in JSON, each with the
time in seconds until which it is valid, or null; `state` is one of the rules', in JSON. A row of
`dead_letters` stands for a delivery, which lies in the log.
"""

WEBHOOK_TABLES = """
CREATE TABLE webhooks (
    subscriber INTEGER PRIMARY KEY, revision INTEGER NOT NULL, url TEXT NOT NULL,
    batch INTEGER NOT NULL, secrets TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE dead_letters (
    subscriber INTEGER, position INTEGER, time_us INTEGER NOT NULL, error TEXT NOT NULL,
    is_due INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (subscriber, position)) WITHOUT ROWID;
"""
