"""The engine `crtree`: the CR-tree paper's forwarding table, exact or by Algorithm 1."""
