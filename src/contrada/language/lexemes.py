"""How the words of CQL2 text are spelt, as pieces of regular expressions.

Whoever looks at a text without parsing it takes these, so that all agree on where a word begins
and ends. No piece captures anything.
"""

STRING = r"'[^']*+(?:''[^']*+)*+'"
QUOTED_NAME = r'"[^"]*+(?:""[^"]*+)*+"'
NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
NAME = r"[^\W\d][\w.:]*"
CALL = r"\s*\("  # behind a name that is called

PLAIN_SHAPE = r"(?i:(?:multi)?(?:point|linestring|polygon))"
WKT_DIMENSIONS = r"(?i:\s*(?:zm|z|m))?\s*"
WKT_OPENING = (
    rf"(?:{PLAIN_SHAPE}|(?i:(?:multi)?(?:curve|surface)|geometrycollection|circularstring|"
    rf"compoundcurve|curvepolygon)){WKT_DIMENSIONS}(?=\(|(?i:empty)\b)"
)  # of a literal, up to its coordinates
_EDGE = rf"[ \t\r\n]*+-?{NUMBER}[ \t\r\n]*+"
PLAIN_BOX = rf"(?i:bbox)\s*+\({_EDGE}(?:,{_EDGE}){{3}}\)"  # whose edges are no expressions

RESERVED = frozenset("and or not like between in is null true false div".split())
