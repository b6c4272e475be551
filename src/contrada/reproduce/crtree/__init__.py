"""Section 5 of the CR-tree paper (Konstantinidis, Carzaniga and Wolf 2011), repeated."""
