"""Arrow IPC streams and files that apache-arrow for JavaScript cannot write. Made with pyarrow 21.0.0: python datagen.py"""

import os

import pyarrow as pa

HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, batches, make=pa.ipc.new_file, **options):
    path = os.path.join(HERE, name)
    with pa.OSFile(path, "wb") as sink:
        with make(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            for batch in batches:
                writer.write_batch(batch)


def batch(array):
    return pa.record_batch([array], names=["c"])


# 40,000 rows: LZ4 frames of several blocks, and buffers that are not worth compressing.
rows = range(40_000)
long = pa.record_batch(
    [pa.array([i // 70 for i in rows], pa.int32()), pa.array(["x" if i % 1000 == 0 else None if i % 3 == 0 else "" for i in rows])],
    names=["i", "s"],
)
words = batch(pa.array(["a", None, "bb", "a"] * 8).dictionary_encode())
for codec in ("lz4", "zstd"):
    write(f"{codec}.arrow", [long], compression=codec)
    write(f"{codec}_words.arrows", [words], pa.ipc.new_stream, compression=codec)

first = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int32()), pa.array(["a", "b"]))
grown = pa.DictionaryArray.from_arrays(pa.array([2, 0], pa.int32()), pa.array(["a", "b", "c"]))
other = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array(["x", "y"]))
write("delta.arrows", [batch(first), batch(grown)], pa.ipc.new_stream, emit_dictionary_deltas=True)
write("delta.arrow", [batch(first), batch(grown)], emit_dictionary_deltas=True)
write("replaced.arrows", [batch(first), batch(other)], pa.ipc.new_stream)

lists = [[1, None], None, [], [3]]
taken = {
    "large_list": pa.array(lists, pa.large_list(pa.int32())),
    "views": pa.array([["a", None], None, ["a string longer than twelve bytes"]], pa.list_(pa.string_view())),
}
refused = {
    "list_view": pa.array(lists, pa.list_view(pa.int32())),
    "decimal32": pa.array([None], pa.decimal32(5, 2)),
    "decimal64": pa.array([None], pa.decimal64(15, 2)),
    "interval": pa.StructArray.from_arrays([pa.array([pa.MonthDayNano([1, 2, 3])])], ["deep"]),
    "union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["a"])]),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"])),
}
for name, array in {**taken, **refused}.items():
    write(f"{name}.arrow", [batch(array)])
