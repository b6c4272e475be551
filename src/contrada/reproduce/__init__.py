"""The papers' experiments, on workloads built as the papers build them."""
