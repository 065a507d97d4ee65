"""What the strict reader takes, what it refuses, and in which words."""

import json
import pickle
import time
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_run.contract.building import Builder
from agent_run.contract.faults import Findings
from agent_run.contract.reading import Document, Fault, ReadingLimits, read_document
from agent_run.contract.yaml_reading import Parser, read_yaml
from agent_run.errors import ContractError, InvalidDocument

QUICK = 5.0
"""Seconds of CPU that no refusal may take, generous for a loaded machine."""

PARSERS = [
    pytest.param(yaml.SafeLoader, id="python"),
    pytest.param(
        yaml.CSafeLoader,
        id="c",
        marks=pytest.mark.skipif(
            not yaml.__with_libyaml__, reason="PyYAML was built without C"
        ),
    ),
]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

FIT_TEXT = st.text(
    st.characters(
        exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"
    )
)
FIT_KEYS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=20)
WORDS = st.text(st.characters(codec="ascii", categories=["L", "P", "S", "Zs"]), max_size=20)
INTEGERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
SCALARS = (
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | FIT_TEXT
)


def _maps(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    # Keys in normal form: two spellings of one key would rightly be refused.
    keys = FIT_KEYS.map(lambda key: "".join(c for c in key if c.isascii()))
    return st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5)


VALUES: st.SearchStrategy[Json] = st.recursive(SCALARS, _maps, max_leaves=20)
VALUES_WITHOUT_DIGITS = st.recursive(
    SCALARS.filter(lambda found: not isinstance(found, str)) | WORDS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(WORDS, inner, max_size=5),
)
"""Some text with digits is a number to YAML 1.2 alone, and a YAML 1.1 writer leaves it bare."""


def value(text: str, source: str = "a.yaml") -> object:
    return read_document(text, source=source).value


def faults(text: str | bytes, source: str = "a.yaml") -> list[str]:
    with pytest.raises(InvalidDocument) as refused:
        read_document(text, source=source)
    assert str(refused.value).split("\n") == [str(fault) for fault in refused.value.faults]
    return [str(fault) for fault in refused.value.faults]


class TestYamlScalars:
    @pytest.mark.parametrize(
        "text",
        [
            *["yes", "no", "on", "off", "y", "012", "1_000", "1:30", "20m", "0x1f", "0o17"],
            *[
                "2026-01-31",
                "2026-01-31T12:00:00Z",
                "=",
                "<<",
                "nan",
                "inf",
                "1.2.3",
                ".",
                "1e",
            ],
        ],
    )
    def test_what_yaml_1_1_would_have_changed_stays_text(self, text: str) -> None:
        assert value(f"key: {text}") == {"key": text}

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            *[("true", True), ("False", False), ("null", None), ("~", None), ("", None)],
            *[("0", 0), ("-7", -7), ("+7", 7), ("9223372036854775807", 2**63 - 1)],
            *[("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-2.5E-1", -0.25)],
        ],
    )
    def test_words_and_decimal_numbers_are_resolved(self, text: str, expected: object) -> None:
        found = value(f"key: {text}")

        assert found == {"key": expected}
        assert isinstance(found, dict)
        assert type(found["key"]) is type(expected)

    @pytest.mark.parametrize("text", ["'1'", '"1"', "'true'", '"~"', "''"])
    def test_what_stands_in_quotes_is_text(self, text: str) -> None:
        assert value(f"key: {text}") == {"key": text[1:-1]}

    def test_block_text_keeps_its_lines_and_tabs(self) -> None:
        assert value("key: |\n  one\n  \ttwo\n") == {"key": "one\n\ttwo\n"}

    def test_a_quoted_merge_key_is_a_key_like_any_other(self) -> None:
        assert value("'<<': 1\n'=': 2\n") == {"<<": 1, "=": 2}


class TestRefusals:
    @pytest.mark.parametrize("parser", PARSERS)
    def test_all_faults_are_reported_at_once(self, parser: Parser) -> None:
        text = (
            "a: &x 1\n"
            "b: *x\n"
            "a: !!python/name [id]\n"
            "c: !local 2\n"
            "d: [.nan, -.inf, 1e999]\n"
            "1: x\n"
            "<<: {k: 1}\n"
            "? [1, 2]\n"
            ": 3\n"
            "e: 9223372036854775808\n"
            'f: "\\0"\n'
            '"g\\u202E": 1\n'
        )
        findings = Findings("a.yaml", 100)

        read_yaml(text, Builder(findings, ReadingLimits()), parser=parser)

        assert [str(fault) for fault in findings.faults] == [
            "a.yaml:1: a: has the anchor 'x', expected a document without anchors",
            "a.yaml:2: b: is the alias 'x', expected the value to be written out",
            "a.yaml:3: a: stands twice, first in line 1, expected each key once",
            "a.yaml:3: a: has the tag '!!python/name', expected a plain value without a tag",
            "a.yaml:4: c: has the tag '!local', expected a plain value without a tag",
            "a.yaml:5: d[0]: is .nan, expected a finite number",
            "a.yaml:5: d[1]: is -.inf, expected a finite number",
            "a.yaml:5: d[2]: is 1e999, expected a number of at most 64 bits",
            "a.yaml:6: has the key 1, expected a string; put it in quotes",
            "a.yaml:7: has the merge key '<<', expected each key to be written out",
            "a.yaml:8: has a list as a key, expected a string",
            "a.yaml:10: e: is '9223372036854775808', expected an integer of at most 64 bits",
            "a.yaml:11: f: holds the NUL character U+0000, expected text",
            (
                "a.yaml:12: has a character that turns the direction of text U+202E "
                "in the key 'g\\u202e', expected plain text"
            ),
        ]

    def test_json_is_held_to_the_same_rules(self) -> None:
        text = '{"a": 1,\n "a": NaN,\n "b": -Infinity,\n "c": "\\ud800",\n "d": 1e999}'

        assert faults(text, "a.json") == [
            "a.json:2: a: stands twice, first in line 1, expected each key once",
            "a.json:2: a: is NaN, expected a finite number",
            "a.json:3: b: is -Infinity, expected a finite number",
            "a.json:4: c: holds half a surrogate pair U+D800, expected text",
            "a.json:5: d: is 1e999, expected a number of at most 64 bits",
        ]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("{'a': 1}", "a.json:1: is not JSON at \"'a'\", expected a key in double quotes"),
            ("[1,]", "a.json:1: [1]: is not JSON at ']', expected no comma before ']'"),
            ("[1] 2", "a.json:1: is not JSON at '2', expected nothing after the one JSON"),
            ('{"a" 1}', "a.json:1: a: is not JSON at '1', expected ':' after a key"),
            ("[1 2]", "a.json:1: [1]: is not JSON at '2', expected ',' or ']'"),
            ("[01]", "a.json:1: [0]: is not JSON at '01', expected a value"),
            ("[1.]", "a.json:1: [0]: is not JSON at '1.', expected a value"),
            ("[+1]", "a.json:1: [0]: is not JSON at '+1', expected a value"),
            ("[1", "a.json:1: [1]: ends too early, expected ',' or ']'"),
            ("// no", "a.json:1: is not JSON at '//', expected a value"),
            ('["a', "a.json:1: [0]: has a string without its closing quote"),
            ('["\\x"]', "a.json:1: [0]: has an unknown escape in a string, expected"),
            ('["\\u12"]', "a.json:1: [0]: has an incomplete '\\u' escape in a string"),
            ('["a\nb"]', "a.json:1: [0]: has a line break or tab in a string"),
        ],
    )
    def test_what_is_almost_json_is_no_json(self, text: str, told: str) -> None:
        (only,) = faults(text, "a.json")

        assert only.startswith(told)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("", "a.yaml: is empty, expected a document"),
            (" \n", "a.yaml: is empty, expected a document"),
            ("# only a remark\n", "a.yaml: is empty, expected a document"),
            ("---\n...\n", "a.yaml: is empty, expected a document"),
            ("a\n---\nb", "a.yaml:2: begins a second document, expected one document in"),
            ("%TAG ! x\n---\na", "a.yaml:1: has a %TAG directive"),
            ("a: 1\n b: 2", "a.yaml:2: is not YAML: "),
            ("a: 'x", "a.yaml:1: a: is not YAML: "),
            (b"\xff\xfea\x00", "a.yaml: is UTF-16, expected UTF-8"),
            (b"\xff\xfe\x00\x00a\x00\x00\x00", "a.yaml: is UTF-32, expected UTF-8"),
            (b"a\x00:\x00 \x001\x00", "a.yaml: looks like UTF-16 or UTF-32, expected UTF-8"),
            (b"a: 1\nb: \xe9", "a.yaml:2: is not UTF-8 at byte 8 (0xe9), expected UTF-8"),
            ("a: \ud800", "a.yaml:1: a: holds half a surrogate pair U+D800, expected text"),
            ("a: x\ufeff", "a.yaml:1: a: holds a byte order mark U+FEFF, expected text"),
            ("a: x\u2028y", "a.yaml:1: a: holds a line separator U+2028, expected text"),
            ("? " + "k" * 1001, "a.yaml:1: has the key 'kkkk"),
        ],
    )
    def test_each_refusal_has_its_own_sentence(self, text: str | bytes, told: str) -> None:
        assert faults(text)[0].startswith(told)

    def test_control_characters_are_told_with_the_key_they_stand_in(self) -> None:
        assert faults(b"a: 1\nb:\n  - x\n  - y\x00\x00\nc: \x1b[31m\n") == [
            "a.yaml:4: b[1]: holds the NUL character U+0000, expected text",
            "a.yaml:5: c: holds the control character U+001B, expected text",
        ]

    def test_control_characters_are_told_beside_a_broken_syntax(self) -> None:
        told = faults("a: \x07\nb: ]\n")

        assert told[0] == "a.yaml:1: a: holds the control character U+0007, expected text"
        assert told[1].startswith("a.yaml:2: b: is not YAML: ")

    def test_two_encodings_of_one_key_are_one_key(self) -> None:
        (told,) = faults("\u00e9: 1\ne\u0301: 2\n")

        assert told == (
            'a.yaml:2: ["e\\u0301"]: stands twice, first in line 1, expected each key once'
        )

    def test_reading_stops_at_a_hundred_faults_and_says_so(self) -> None:
        told = faults("\n".join(f"k{number}: !t 1" for number in range(1000)))

        assert len(told) == 101
        assert told[-1] == ("a.yaml:100: has 100 faults up to here, the rest was not looked at")

    def test_a_refusal_is_a_contract_error_that_survives_pickling(self) -> None:
        with pytest.raises(InvalidDocument) as refused:
            read_document("a: !x 1", source="a.yaml")

        assert isinstance(refused.value, ContractError)
        again = pickle.loads(pickle.dumps(refused.value))
        assert again.faults == refused.value.faults
        assert str(again) == str(refused.value)


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
MIB = 1_048_576


class TestHostileSizes:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(BOMB, id="billion laughs"),
            pytest.param("[" * MIB, id="open lists"),
            pytest.param("{" * MIB, id="open mappings"),
            pytest.param("- " * (MIB // 2), id="block lists"),
            pytest.param("? " * (MIB // 2), id="complex keys"),
            pytest.param('{"a":' * (MIB // 5), id="nested mappings"),
            pytest.param("9" * MIB, id="digits"),
            pytest.param("[1." + "9" * (MIB - 10) + "]", id="decimals"),
            pytest.param("[" + "1," * 200_000 + "1]", id="many nodes"),
            pytest.param("\x00" * MIB, id="NULs"),
            pytest.param("a\x00" * (MIB // 2), id="scattered NULs"),
            pytest.param('"' + "\\u0000" * (MIB // 6 - 1) + '"', id="escaped NULs"),
            pytest.param("!" * MIB, id="one long tag"),
            pytest.param("&a " * (MIB // 3), id="anchors"),
            pytest.param("'" * (MIB - 1), id="quotes"),
            pytest.param("a: 1\n" * (MIB // 5), id="one key many times"),
            pytest.param("x" * (MIB + 1), id="too long"),
            pytest.param("%" + "a" * (MIB - 1), id="directive"),
            pytest.param("---\n" * (MIB // 4), id="documents"),
        ],
    )
    @pytest.mark.parametrize("source", ["a.yaml", "a.json"])
    def test_hostile_text_is_refused_quickly(self, text: str, source: str) -> None:
        before = time.process_time()

        told = faults(text, source)

        assert time.process_time() - before < QUICK
        assert all(len(line) < 1_000 for line in told)

    @pytest.mark.parametrize("source", ["a.yaml", "a.json"])
    def test_the_allowed_depth_is_allowed_and_one_more_is_not(self, source: str) -> None:
        assert value("[" * 32 + "]" * 32, source)

        (told,) = faults("[" * 33 + "]" * 33, source)

        assert told.endswith("[0]: is nested deeper than 32 levels")

    def test_limits_are_the_callers(self) -> None:
        limits = ReadingLimits(max_bytes=20, max_nodes=3)

        assert read_document("[1, 2]", source="-", limits=limits).value == [1, 2]
        with pytest.raises(InvalidDocument, match="is value number 4, expected at most 3"):
            read_document("[1, 2, 3]", source="-", limits=limits)
        with pytest.raises(InvalidDocument, match="is 21 bytes long, expected at most 20"):
            read_document(b"x" * 21, source="-", limits=limits)

    def test_places_of_a_deep_and_wide_document_take_little_room(self) -> None:
        deep = "".join(f'{{"{"k" * 900}{level}":' for level in range(30))
        text = deep + "[" + "1," * 90_000 + "1]" + "}" * 30

        document = read_document(text, source="a.json")

        assert len(document.lines) == 90_032


class TestPlaces:
    @pytest.mark.parametrize("format_", ["yaml", "json"])
    def test_each_key_and_item_has_its_line_and_column(self, format_: str) -> None:
        text = '{"a": {"b.c": 1},\n "d": [1,\n   {"e": null}]}'

        document = read_document(text, source=f"x.{format_}")

        assert dict(document.lines) == {
            "": (1, 1),
            "a": (1, 2),
            'a["b.c"]': (1, 8),
            "d": (2, 2),
            "d[0]": (2, 8),
            "d[1]": (3, 4),
            "d[1].e": (3, 5),
        }

    @pytest.mark.parametrize("path", ["b", "a[0]", "a.", 'a["b', "[99]", "a.b.c"])
    def test_a_path_that_is_not_there_is_a_key_error(self, path: str) -> None:
        lines = read_document("a: {b: 1}", source="x.yaml").lines

        with pytest.raises(KeyError):
            lines[path]

    @given(VALUES)
    def test_every_path_that_is_listed_can_be_looked_up(self, found: Json) -> None:
        lines = read_document(json.dumps(found), source="x.json").lines

        assert [lines[path] for path in lines] == list(lines.values())
        assert len(lines) == len(set(lines))

    def test_a_fault_reads_like_a_compilers(self) -> None:
        fault = Fault("a.yaml", 7, 3, "budget.max_attempts", "is 'x', expected an integer")

        assert str(fault) == "a.yaml:7: budget.max_attempts: is 'x', expected an integer"
        assert str(Fault("-", None, None, "", "is empty")) == "-: is empty"


class TestFormats:
    @pytest.mark.parametrize(
        ("source", "text", "expected"),
        [
            ("a.YML", "{a: 1}", {"a": 1}),
            ("-", "a: 1", {"a": 1}),
            ("-", ' \n{"a": 1}', {"a": 1}),
            ("-", "[1]", [1]),
            ("a.json", "1", 1),
        ],
    )
    def test_the_name_decides_and_then_the_text(
        self, source: str, text: str, expected: object
    ) -> None:
        assert value(text, source) == expected

    def test_what_the_caller_says_wins(self) -> None:
        assert read_document("{a: 1}", source="a.json", format="yaml").value == {"a": 1}
        with pytest.raises(InvalidDocument):
            read_document("a: 1", source="a.yaml", format="json")

    @pytest.mark.parametrize("source", ["a.yaml", "a.json"])
    def test_a_byte_order_mark_and_any_line_end_are_fine(self, source: str) -> None:
        text = '\ufeff{"a": 1,\r\n"b": 2,\r"c": 3}'

        for given_as in (text, text.encode()):
            document = read_document(given_as, source=source)
            assert document.value == {"a": 1, "b": 2, "c": 3}
            assert [place[0] for place in document.lines.values()] == [1, 1, 2, 3]


REFUSED = object()


def _outcome(text: str, parser: Parser) -> object:
    findings = Findings("x", 100)
    builder = Builder(findings, ReadingLimits())
    try:
        read_yaml(text, builder, parser=parser)
        findings.settle()
    except InvalidDocument:
        return REFUSED
    return builder.value


YAML_LIKE = st.lists(
    st.sampled_from(
        [
            *"[]{}'\"|>#~1a\n\t\\%é",
            "b: ",
            "- ",
            "  ",
            ", ",
            ": ",
            "? ",
            "&x ",
            "*x",
            "!t ",
            "---\n",
        ]
    )
).map("".join)


class TestAnything:
    @given(st.binary(), st.sampled_from(["a.yaml", "a.json", "-"]))
    def test_bytes_are_a_document_or_are_refused(self, text: bytes, source: str) -> None:
        _document_or_refusal(lambda: read_document(text, source=source))

    @given(st.text() | YAML_LIKE, st.sampled_from(["a.yaml", "a.json", "-"]))
    def test_text_is_a_document_or_is_refused(self, text: str, source: str) -> None:
        _document_or_refusal(lambda: read_document(text, source=source))

    @given(found=VALUES, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
    def test_valid_json_reads_as_the_standard_library_reads_it(
        self, *, found: Json, indent: int | None, ascii_only: bool
    ) -> None:
        text = json.dumps(found, indent=indent, ensure_ascii=ascii_only)

        assert value(text, "a.json") == json.loads(text) == found

    @given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\u \n', max_size=30))
    def test_json_that_the_standard_library_refuses_is_refused(self, text: str) -> None:
        try:
            expected = json.loads(text)
        except ValueError:
            faults(text, "a.json")
            return
        try:
            found = value(text, "a.json")
        except InvalidDocument:
            return  # Stricter than the standard library: that is the point.
        assert found == expected

    @given(VALUES_WITHOUT_DIGITS)
    def test_what_a_yaml_writer_writes_reads_back(self, found: Json) -> None:
        text = yaml.safe_dump(found, allow_unicode=True)

        assert value(text) == found

    @pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without C")
    @given(YAML_LIKE | VALUES.map(yaml.safe_dump))
    def test_both_parsers_give_the_same_value_or_one_refuses(self, text: str) -> None:
        by_c, by_python = (_outcome(text, p) for p in (yaml.CSafeLoader, yaml.SafeLoader))

        assert by_c == by_python or REFUSED in (by_c, by_python)


def _document_or_refusal(read: Callable[[], Document]) -> None:
    try:
        document = read()
    except InvalidDocument as refused:
        assert refused.faults  # noqa: PT017 - either outcome is right
        return
    json.dumps(document.value, allow_nan=False)
