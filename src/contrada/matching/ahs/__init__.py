"""The engine `ahs`: the AHS paper's model of quadtree cells, whole and in shares."""
