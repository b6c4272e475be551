"""What a client does unless it is told otherwise, for the command line, too; it loads nothing."""

URL_VARIABLE, KEY_VARIABLE = "CONTRADA_URL", "CONTRADA_KEY"
DEFAULT_URL = "http://127.0.0.1:8080"
BATCH_EVENTS_MAX = 500
