"""The only room that listens on sockets: HTTP, streams and webhooks over a broker; no SQL."""
