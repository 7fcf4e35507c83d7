"""Writes small data files and tables with pylance 14.0.2, beside their rows as Arrow IPC streams.

    LANCELET_PYTHON=venv/bin/python npm run golden         (or: venv/bin/python wasm/tests/golden/datagen.py [case...])

requirements.txt names the version: `python -m venv venv && venv/bin/pip install -r wasm/tests/golden/requirements.txt`.

A data file case is a folder with v2_0.lance, v2_1.lance and v2_2.lance (those that the version can hold) and expected.arrows; a table
case is a folder `tables/<case>_<version>` with the table's files and expected.arrows, what pylance itself reads of it. Values come from
a seeded generator: a second run gives the same rows.
"""

import datetime
import decimal
import random
import shutil
import sys
import tempfile
from pathlib import Path

import lance
import pyarrow as pa
from lance.file import LanceFileWriter

PINNED = "14.0.2"
TARGET = Path(__file__).parent / f"pylance-{PINNED}"
ALL = ("2.0", "2.1", "2.2")
NEW = ("2.1", "2.2")

rng = random.Random()


def words(n):
    return " ".join(rng.choice(["lance", "page", "column", "browser", "tab", "fragment"]) for _ in range(n))


def holes(k, values):
    """Every value null with a chance of one in `k`."""
    return [None if rng.randrange(k) == 0 else value for value in values]


def field(name, data_type, nullable=True):
    return pa.field(name, data_type, nullable)


def meta(name, data_type, metadata):
    return pa.field(name, data_type, True, metadata)


def table(*columns):
    """Of pairs of a field and its values, plain or an array."""
    arrays = [v if isinstance(v, pa.Array) else pa.array(v, f.type) for f, v in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema([f for f, _ in columns]))


# ---- data files: a function per case, which returns the versions and the rows


def packed():
    n = 40
    fixed = pa.struct([field("a", pa.int32()), field("b", pa.float64()), field("c", pa.uint8())])
    rows = [{"a": i, "b": i / 2, "c": 7 * i % 256} for i in range(n)]
    return ALL, table((meta("p", fixed, {"packed": "true"}), rows), (field("after", pa.int32()), range(n)))


def packed_nulls():
    fixed = pa.struct([field("a", pa.int32()), field("b", pa.float64())])
    rows = [{"a": rng.randrange(1000), "b": i / 2} for i in range(40)]
    return NEW, table((meta("p", fixed, {"lance-encoding:packed": "true"}), holes(4, rows)))


def packed_variable():
    members = pa.struct([field("a", pa.int32()), field("s", pa.string()), field("b", pa.large_binary())])
    rows = [{"a": i, "s": words(i % 5), "b": bytes(rng.randrange(256) for _ in range(i % 9))} for i in range(40)]
    packed = {"packed": "true"}
    return ("2.2",), table((meta("p", members, packed), rows), (meta("q", members, packed), holes(3, rows)))


def maps():
    text, lists = pa.map_(pa.string(), pa.int32()), pa.map_(pa.int32(), pa.list_(pa.string()))
    entries = [[(words(1) + str(k), None if k == 1 else k) for k in range(rng.randrange(4))] for _ in range(40)]
    nested = [[(k, holes(3, ["x", "yz"][: rng.randrange(3)])) for k in range(rng.randrange(3))] for _ in range(40)]
    structs = pa.struct([field("m", text)])
    return ("2.2",), table(
        (field("m", text), holes(5, entries)),
        (field("full", text), [[("k", 1)]] * 40),
        (field("of_lists", lists), holes(5, nested)),
        (field("in_struct", structs), holes(5, [{"m": m} for m in holes(4, entries)])),
    )


def fixed_size_lists_of_structs():
    item = pa.struct([field("a", pa.int32()), field("s", pa.string())])
    member = lambda i: {"a": None if i % 5 == 0 else i, "s": None if i % 7 == 0 else words(1)}
    rows = [holes(6, [member(3 * i + k) for k in range(3)]) for i in range(30)]
    return ("2.2",), table(
        (field("plain", pa.list_(item, 3)), [[{"a": i, "s": str(i)}] * 3 for i in range(30)]),
        (field("holes", pa.list_(item, 3)), holes(5, rows)),
    )


def dictionaries():
    n = 60

    def column(name, keys, values):
        indices = pa.array(holes(6, [rng.randrange(len(values)) for _ in range(n)]), keys)
        array = pa.DictionaryArray.from_arrays(indices, values)
        return field(name, array.type), array

    return NEW, table(
        column("i64", pa.int8(), pa.array([1 << 40, -1, 7], pa.int64())),
        column("f64", pa.uint16(), pa.array([1.5, -0.0, 2.25])),
        column("bytes", pa.int32(), pa.array([b"", b"ab", b"\xff\x00"], pa.binary())),
        column("large", pa.uint8(), pa.array(["a", "", "longer text"], pa.large_string())),
        column("i16", pa.int64(), pa.array([3, 1, 2], pa.int16())),
    )


def decimals():
    # Half of the digits of the widest one.
    big = [decimal.Decimal(rng.randrange(10**38)).scaleb(-10) for _ in range(50)]
    small = [decimal.Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-2) for _ in range(50)]
    return ALL, table(
        (field("wide", pa.decimal256(50, 10)), big),
        (field("wide_holes", pa.decimal256(76, 0)), holes(4, [decimal.Decimal(rng.randrange(10**30)) for _ in small])),
        (field("narrow", pa.decimal128(12, 2)), holes(4, small)),
        (field("few", pa.decimal128(38, 4)), [decimal.Decimal("1.2500"), decimal.Decimal("-3.0001")] * 25),
    )


def large_lists():
    n = 40
    numbers = [[rng.randrange(100) for _ in range(rng.randrange(4))] for _ in range(n)]
    texts = [holes(3, [words(1) for _ in range(rng.randrange(3))]) for _ in range(n)]
    return ALL, table(
        (field("numbers", pa.large_list(pa.int32())), numbers),
        (field("holes", pa.large_list(pa.int64())), holes(4, [holes(4, row) for row in numbers])),
        (field("texts", pa.large_list(pa.large_string())), holes(4, texts)),
        (field("lists", pa.large_list(pa.list_(pa.int8()))), holes(5, [holes(3, [row, [], row]) for row in numbers])),
    )


def lists_of_structs():
    n = 40
    item = pa.struct([field("x", pa.int32()), field("y", pa.list_(pa.string()))])
    rows = [
        holes(4, [{"x": k, "y": holes(3, [holes(3, ["a", "b"]), []])[0]} for k in range(rng.randrange(4))])
        for _ in range(n)
    ]
    outer = pa.struct([field("l", pa.list_(item)), field("z", pa.float32())])
    return NEW, table(
        (field("large", pa.large_list(item)), holes(4, rows)),
        (field("outer", outer), holes(4, [{"l": row, "z": i / 4} for i, row in enumerate(holes(4, rows))])),
    )


def half_floats():
    item = pa.field("item", pa.binary(2), True, {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""})
    brain = pa.FixedSizeListArray.from_arrays(pa.array([bytes([i, 63]) for i in range(160)], pa.binary(2)), type=pa.list_(item, 4))
    # The stream of rows lacks the empty metadata of the extension type, as a table's schema does.
    return ALL, table(
        (field("f16", pa.float16()), holes(4, [i / 4 - 3 for i in range(40)])),
        (field("v16", pa.list_(pa.float16(), 3)), [[i, i / 2, -i] for i in range(40)]),
        (field("brain", brain.type), brain),
    )


def compression():
    n = 400
    ints = pa.array([i * 37 % 1000 * 1_000_003 for i in range(n)], pa.int64())
    floats = pa.array([round(i * 0.25 + i % 3, 2) for i in range(n)], pa.float32())
    texts = [f"{words(2)} {i}" for i in range(n)]
    columns = []
    for scheme in ("none", "lz4", "zstd"):
        metadata = {"lance-encoding:compression": scheme}
        columns.append((meta(f"ints_{scheme}", pa.int64(), metadata), ints))
        columns.append((meta(f"texts_{scheme}", pa.string(), metadata), texts))
    columns.append((meta("texts_fsst", pa.string(), {"lance-encoding:compression": "fsst"}), texts))
    for mode in ("on", "off", "auto"):
        metadata = {"lance-encoding:compression": "lz4", "lance-encoding:bss": mode}
        columns.append((meta(f"floats_{mode}", pa.float32(), metadata), floats))
    return NEW, table(*columns)


def full_zip():
    wide = {"lance-encoding:structural-encoding": "fullzip"}
    n = 60
    deep = [[[rng.randrange(9) for _ in range(rng.randrange(3))] for _ in range(rng.randrange(3))] for _ in range(n)]
    return NEW, table(
        (meta("flag", pa.bool_(), wide), [i % 3 == 0 for i in range(n)]),
        (meta("flag_holes", pa.bool_(), wide), holes(4, [i % 3 == 0 for i in range(n)])),
        (meta("text", pa.string(), wide), holes(5, [words(i % 4) for i in range(n)])),
        (meta("vector", pa.list_(pa.float32(), 3), wide), holes(5, [[i, 1, -i] for i in range(n)])),
        (meta("lists", pa.list_(pa.int32()), wide), holes(5, [holes(4, row[0] if row else []) for row in deep])),
        (meta("deep", pa.list_(pa.list_(pa.int32())), wide), holes(5, deep)),
    )


def many_pages():
    n = 400
    text = holes(9, [words(i % 3) for i in range(n)])
    # Nothing, then nulls, then values: layouts change from page to page.
    runs = [None] * 100 + [5] * 100 + list(range(200))
    lists = [[]] * 100 + [None] * 100 + [[i, None] for i in range(200)]
    return NEW, table(
        (field("id", pa.int64()), range(n)),
        (field("text", pa.string()), text),
        (field("runs", pa.int32()), runs),
        (field("lists", pa.list_(pa.int16())), lists),
        (field("s", pa.struct([field("a", pa.int8()), field("b", pa.string())])), holes(6, [{"a": i % 100, "b": t} for i, t in enumerate(text)])),
    )


def no_rows():
    return ALL, table(
        (field("a", pa.int32()), []),
        (field("b", pa.string()), []),
        (field("c", pa.list_(pa.int32())), []),
        (field("d", pa.struct([field("x", pa.float32())])), []),
        (field("e", pa.list_(pa.float32(), 4)), []),
    )


def scalars():
    """One row of each, small enough to be a seed of the fuzzers."""
    at = datetime.datetime(2024, 2, 29, 12, 30, 15, 250_000)
    return ALL, table(
        (field("i8", pa.int8()), [-1]),
        (field("u64", pa.uint64()), [(1 << 64) - 1]),
        (field("f64", pa.float64()), [1.5]),
        (field("flag", pa.bool_()), [True]),
        (field("text", pa.string()), ["text"]),
        (field("bytes", pa.binary()), [b"\x00\x01"]),
        (field("day", pa.date32()), [at.date()]),
        (field("at", pa.timestamp("us", "+01:00")), [at.replace(tzinfo=datetime.timezone.utc)]),
        (field("list", pa.list_(pa.int32())), [[1, None]]),
        (field("null", pa.null()), [None]),
    )


def tiny_lists():
    rows = [[1, 2], None, [], [None]]
    return ALL, table((field("l", pa.list_(pa.int32())), rows), (field("s", pa.list_(pa.string())), [["x"], [], None, [None, "yz"]]))


CASES = [
    packed,
    packed_nulls,
    packed_variable,
    maps,
    fixed_size_lists_of_structs,
    dictionaries,
    decimals,
    large_lists,
    lists_of_structs,
    half_floats,
    compression,
    full_zip,
    many_pages,
    no_rows,
    scalars,
    tiny_lists,
]


def write_stream(path, rows):
    with pa.ipc.new_stream(path, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())


def write_files(case, folder):
    rng.seed(case.__name__)
    versions, rows = case()
    options = {"data_cache_bytes": 1, "max_page_bytes": 1024} if case is many_pages else {}
    for version in versions:
        with LanceFileWriter(str(folder / f"v{version.replace('.', '_')}.lance"), rows.schema, version=version, **options) as writer:
            for batch in rows.to_batches(max_chunksize=50 if options else None):
                writer.write_batch(batch)
    write_stream(folder / "expected.arrows", rows)


# ---- tables: a function per case, which makes a table and returns what it is to be read as


def evolution(uri, version):
    """Columns in several data files, dropped, renamed, of another type, and without a file; deleted rows."""
    rows = lambda start, n: table(
        (field("id", pa.int64(), False), range(start, start + n)),
        (field("text", pa.string()), holes(5, [words(2) for _ in range(n)])),
        (field("gone", pa.int32()), range(n)),
        (field("s", pa.struct([field("x", pa.int32()), field("y", pa.string())])), [{"x": i, "y": words(1)} for i in range(n)]),
    )
    dataset = lance.write_dataset(rows(0, 30), uri, data_storage_version=version)
    dataset = lance.write_dataset(rows(30, 20), uri, mode="append")
    dataset.add_columns({"twice": "id * 2", "label": "concat('row ', cast(id as string))"})
    dataset.drop_columns(["gone"])
    dataset.alter_columns({"path": "text", "name": "words"}, {"path": "twice", "data_type": pa.int32()})
    dataset.delete("id % 7 = 3")
    dataset.add_columns(pa.schema([field("nothing", pa.float32()), field("list", pa.list_(pa.int32()))]))
    dataset = lance.dataset(uri)
    more = table(
        (field("id", pa.int64(), False), range(50, 60)),
        (field("words", pa.string()), [words(1) for _ in range(10)]),
        (field("s", pa.struct([field("x", pa.int32()), field("y", pa.string())])), [{"x": i, "y": "new"} for i in range(10)]),
        (field("twice", pa.int32()), range(100, 120, 2)),
        (field("label", pa.string()), [None] * 10),
        (field("nothing", pa.float32()), [i / 2 for i in range(10)]),
        (field("list", pa.list_(pa.int32())), [[i] for i in range(10)]),
    )
    lance.write_dataset(more, uri, mode="append")
    return lance.dataset(uri)


def row_ids(uri, version):
    """Stable row ids through deletes, an update and a compaction."""
    rows = lambda start, n: table((field("id", pa.int64()), range(start, start + n)), (field("text", pa.string()), [words(2) for _ in range(n)]))
    lance.write_dataset(rows(0, 30), uri, data_storage_version=version, enable_stable_row_ids=True)
    dataset = lance.write_dataset(rows(30, 30), uri, mode="append")
    dataset.delete("id in (3, 4, 40)")
    dataset.update({"text": "'changed'"}, where="id % 10 = 5")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    dataset = lance.write_dataset(rows(60, 5), uri, mode="append")
    return dataset


def blobs(uri, version):
    values = [None, b"", b"abc", bytes(rng.randrange(256) for _ in range(600)), b"x" * 5000, None]
    number = (field("id", pa.int32()), range(len(values)))
    if version == "2.2":
        column = (lance.blob_field("blob"), lance.blob_array(values))
    else:
        column = (meta("blob", pa.large_binary(), {"lance-encoding:blob": "true"}), values)
    lance.write_dataset(table(number, column), uri, data_storage_version=version)
    return lance.dataset(uri)


TABLES = [(evolution, ALL), (row_ids, NEW), (blobs, ALL)]


def write_table(case, version, folder):
    rng.seed(case.__name__ + version)
    with tempfile.TemporaryDirectory() as temporary:
        uri = f"{temporary}/table"
        dataset = case(uri, version)
        write_stream(folder / "expected.arrows", dataset.to_table())
        shutil.copytree(uri, folder / "table")


def main():
    if lance.__version__ != PINNED:
        sys.exit(f"this is pylance {lance.__version__}, the golden files are of {PINNED}")
    only = sys.argv[1:]
    jobs = [(case.__name__, lambda folder, case=case: write_files(case, folder)) for case in CASES]
    for case, versions in TABLES:
        for version in versions:
            name = f"tables/{case.__name__}_{version.replace('.', '_')}"
            jobs.append((name, lambda folder, case=case, version=version: write_table(case, version, folder)))
    for name, job in jobs:
        if only and not any(word in name for word in only):
            continue
        folder = TARGET / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        job(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{name}: {size} bytes")


main()
