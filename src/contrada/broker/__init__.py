"""The durable log, cursors and deliveries: SQLite and the matcher, no HTTP."""

from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions

__all__ = ["Broker", "BrokerOptions"]
