"""The overlay in virtual time: a network that fails, garbage, and a checker from the outside."""
