"""What talks to a broker: clients, and the verification of webhooks; needs no server package."""
