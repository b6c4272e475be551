"""Random cases: the same in every run of `make test`, new and many in `make soak`."""

from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=3_000, print_blob=True)
settings.load_profile("default")
