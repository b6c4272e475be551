"""What the AHS paper states in the text of its section 5; of its figures we have no numbers."""

TITLE = (
    "Huang, Liang: AHS Model: Efficient Topological Operators for a Sensor Web Publish/Subscribe "
    "System (2017), sections 5.1 to 5.4"
)
PAPER_LEVEL = 14  # of the quadtree, sections 5.2 and 5.3
STEP = 500  # subscriptions between two measurements, section 5.1

# "the query latency of the AHS model increases 2.5 times slower than that of PostGIS"
GROWTH_OF_POSTGIS = "2.5×"

# Workers in charge of one cell each of levels 0 to 4, the latest of them counts.
WORKER_LEVELS = (0, 1, 2, 3, 4)
GAIN_OF_INDEXING, GAIN_OF_MATCHING = "5× to 10×", "20× to 300×"  # by 256 workers
POLYGON_SHARE_MAX = 0.37  # of the Earth, the largest polygon of section 5.2
LINE_LENGTH_MAX_KM = 7_778  # the longest line of section 5.3

# Section 5.4: two workers on two machines, the mean of ten.
WORKER_COUNT, REPEATS = 2, 10
OVERHEAD = "10 to 30 ms"
SHARE_OF_INDEX_AND_OVERHEAD = "more than 99 %"
UNDER_100_MS, UNDER_50_MS = "most", "more than 70 %"
