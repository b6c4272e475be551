"""What a stranger may send at the most: every limit once, and no other module states one.

Each is shown in the table of `docs/limits.md`, which a test compares with this page. What costs
more than its size allows is refused with the limit by name. The overlay has limits of its own,
which follow from its protocol.
"""

# Predicates
PREDICATE_DEPTH_MAX = 100  # levels of a tree: evaluation recurses, too
PREDICATE_NESTING_MAX = 3 * PREDICATE_DEPTH_MAX  # a level may be a parenthesis and two signs
PREDICATE_JOINS_MAX = 4_096  # ANDs and ORs of one text
FILTERS_MAX = 1_024  # of one predicate in normal form
CONSTRAINTS_MAX = 65_536  # of all filters of one predicate, counted once for each filter
NORMAL_FORM_STEPS_MAX = 2_000_000  # filters joined on the way to the normal form
PREDICATE_LENGTH_MAX = 64 * 2**20  # characters of a text, CQL2 or JSON
PREDICATE_TOKENS_MAX = 1_000_000  # of a text: words, signs and the gaps between them
PREDICATE_ATOMS_MAX = 100_000  # names, numbers, strings and geometries of one predicate
NAME_LENGTH_MAX = 1_000  # characters of an attribute's name
NAME_PARTS_MAX = 100  # of an attribute's name, between dots: each of them may begin a path
LIKE_PATTERN_LENGTH_MAX = 1_000  # characters; a longer one in an event is unknown
SIMPLIFIER_PAIRS_MAX = 1_000_000  # of constraints on one attribute; others are left as they are
SIMPLIFIER_VERTICES_MAX = 1_000_000  # of the pairs of regions that are related
INTEGER_BITS_MAX = 1_024  # of integers in arithmetic, and of what they give: as large as doubles
COMPARED_BITS_MAX = 16_384  # of integers beside decimal numbers, whose digits Python squares

# Values of events
COLUMN_DEPTH_MAX = 64  # levels of a column's type, or of a value that is to be in a column
SHARED_VALUES_MAX = 10_000  # of a value whose parts stand in many places, once written out
ARRAY_DEPTH_MAX = 100  # arrays within each other; deeper ones are unknown
ARRAY_PAIRS_MAX = 200_000  # comparisons of arrays in arrays with each other; beyond it: unknown
ARRAY_ELEMENTS_MAX = 2_000_000  # of the arrays that are so compared, if that is many for each

# Geometries
DISTANCE_PIECES_MAX = 1_000_000  # pairs of pieces of edges, halved to tell a distance
PAIR_CONTACTS_MAX = 200_000  # of the edges of two geometries: a matrix takes time for each
PAIR_BOXES_MAX = 8_000_000  # of the edges of two geometries, whose boxes meet
PAIR_PARTS_MAX = 100_000_000  # of the rings and lines of two geometries
PAIR_MEMBERS_MAX = 2_000_000  # the same where one of them is a collection
CONTACT_PAIRS_MAX = 2_000_000  # of edges, points and parts of two, to see whether they meet
CONTACT_EDGES_MAX = 100_000_000  # of areas, as high as points of another geometry
OWN_CROSSINGS_MAX = 10_000  # of the edges of a line or a collection: relations take the square
OWN_CONTACTS_MAX = 20_000  # of the edges of the members of a collection
RING_PAIRS_MAX = 2_000_000  # of rings of one polygon whose boxes meet, if that is many for each
RUN_PAIRS_MAX = 4_000_000  # of runs of its rings, edges in one direction, whose boxes meet
VERTEX_PAIRS_MAX = 100_000  # of its rings, or of edges of a line, at vertices that many share
LINE_CONTACTS_MAX = 1_000_000  # of the edges of a line, if that is many for each
GEOMETRY_DEPTH_MAX = 100  # collections within each other, and parentheses of a text
MEND_CROSSINGS_MAX = 1_000  # of edges: GEOS takes the square of them
MEND_CONTACTS_MAX = 50_000  # of edges, crossings and touches
MEND_NESTINGS_MAX = 200_000  # pairs of rings whose boxes lie in each other
MEND_PAIRS_MAX = 4_000_000  # of edges whose boxes meet
MEND_RINGS_MAX = 10_000  # of one polygon: GEOS takes the square of them, as of the next two
MEND_STRAYS_MAX = 2_500  # holes of one polygon beyond the box of its shell
MEND_TOUCHES_MAX = 5_000  # contacts of the edges of one polygon: each may cut a face off
OUTLINE_CELLS_MAX = 2**22  # of the grid, along one outline
BOUNDARY_POINTS_MAX = 1_000_000  # of one boundary, for the discrete evaluator
DENSITY_MAX = 1_000_000_000  # points on a unit of a boundary, for the discrete evaluator

# Transitions
DURATION_DAYS_MAX = 3_652_500  # of lateness, silence, cooldown and dwell: ten thousand years

# Simulations
SIMULATED_MAX = 1_000_000  # peers, events or rounds of one

# Files
ROW_BYTES_MAX = 64 * 2**20  # of one row in text: it must be in memory as a whole
COLUMNS_MAX = 10_000  # of one text file, those inside others too
OVERLAP_BYTES_MAX = 2**30  # of views of texts that overlap, if they take far fewer
PARQUET_DEPTH_MAX = 99  # of groups and columns in each other in the schema of a Parquet file
PARQUET_PAGE_BYTES_MAX = 64 * 2**20  # of a page, if it takes far fewer in the file
LIST_VALUES_MAX = 2**25  # in the lists of a row group of Parquet, if it takes far fewer bytes
LIST_CELLS_MAX = 1_000_000  # of a list of objects as a table, if they are far more than its values
TABLE_CELLS_MAX = 100_000_000  # of the columns read of a JSON file, if far more than its values
DIGITS_MAX = 4_300  # of an integer in a JSON file: Python refuses more, as its time is the square
JSON_DEPTH_MAX = 64  # objects and lists within each other: as many as Arrow's files hold
DIRECTORY_BYTES_MAX = 16 * 2**20  # settings and names of the columns of a snapshot, as JSON
ARCHIVE_BYTES_MAX = 256 * 2**20  # of XML in a zip archive, if it takes far fewer there
XML_DEPTH_MAX = 63  # elements within each other: at one more GDAL stops, without a word

# Collections of a broker
COLLECTION_ROWS_MAX = 10_000_000  # of one collection
COLLECTION_BYTES_MAX = 4 * 2**30  # of one file of rows that is sent to a broker

# Messages
MESSAGE_BYTES_MAX = 16 * 2**20  # of one in JSON, from Kafka or elsewhere
MESSAGE_DEPTH_MAX = 2 * GEOMETRY_DEPTH_MAX + 16  # a collection is two levels, an envelope a few

# The broker
BROKER_NAME_LENGTH_MAX = 200  # characters of the id of a subscription, or a subscriber's name
WHY_MAX = 100  # ids of which one request may ask why they match
WHY_CHARACTERS_MAX = 2**22  # of the explanations in one answer, of which one may be longer
MATCHES_AT_ONCE_MAX = 10_000  # in one answer to what an event would match
PAGE_DELIVERIES_MAX = 1_000  # in one page of deliveries, or of a list
EVENT_BYTES_MAX = 2**19  # of one event as JSON, without white space
EVENT_VERTICES_MAX = 100_000  # of the geometries of one event
REQUEST_EVENTS_MAX = 10_000  # of one request, however small
HELD_POSITIONS_MAX = 1_000_000  # of a tenant, that wait until `lateness` is over
HELD_PER_OBJECT_MAX = 10_000  # of one object
OBJECTS_BYTES_MAX = 2 * 2**30  # of what a tenant's broker knows of objects, with what waits
WEBHOOK_URL_LENGTH_MAX = 2_000  # characters of the target of a webhook
WEBHOOK_BATCH_MAX = 1_000  # deliveries in one request to a webhook
REQUEST_MATCHES_MAX = 1_000_000  # of all its events; one event may have any number
REQUEST_CELLS_MAX = 2_000_000  # of its events as a table: names of properties times events
SUBSCRIPTIONS_MAX = 10_000_000  # of a tenant, a collection as one
QUEUE_EVENTS_MAX = 100_000  # of a tenant, that wait to be stored
QUEUE_BYTES_MAX = 256 * 2**20  # of these, as they came

# The server
CONNECTIONS_MAX = 4_096  # that are open at one time, handshakes among them
CONNECTIONS_PER_ADDRESS_MAX = 2_048  # of one address, or one /64 of IPv6
REQUESTS_PER_S_MAX = 5_000  # of one key, or of an address without one; twice as many at once
FRAMES_PER_S_MAX = 5_000  # of all sockets of such a caller; twice as many at once
CONTROL_FRAMES_PER_S_MAX = 50  # of one socket: pings, pongs and parts without content
HEADER_BYTES_MAX = 32_768  # of the first line and all headers of one request
HEADER_S_MAX = 10  # for a TLS handshake, and for a header
IDLE_S_MAX = 75  # for which a connection may be open without a request
STALL_S_MAX = 60  # in which a client takes nothing of what waits for it
BODIES_BYTES_MAX = 256 * 2**20  # of all bodies of requests that are in memory at one time
BODIES_OF_CALLER_BYTES_MAX = 64 * 2**20  # the same of one key, or of an address without one
BODY_START_S_MAX = 10  # in which a body may come at any speed
BODY_BYTES_PER_S_MIN = 65_536  # after that
BODY_IDLE_S_MAX = 30  # without a byte, in mid-body
BODY_TIME_S_MAX = 300  # for a whole body
SUBSCRIPTION_BYTES_MAX = 8 * 2**20  # of the body of one subscription
WAIT_S_MAX = 60  # of a read that waits for deliveries
STREAMS_MAX = 4_000  # streams, sockets and waiting reads that are open at one time
FRAME_BYTES_MAX = 2**20  # of one frame of a socket
SOCKET_PUBLISHES_MAX = 256  # frames published on one socket and not yet answered
SOCKET_READERS_MAX = 100  # subscribers that one socket reads
CREDIT_MAX = 100_000  # deliveries that a socket may ask for in advance
