/**
 * Arrow IPC bytes where `apache-arrow` falls short, so that LanceDB and this library are given the same things and asked the same.
 *
 * It has no large lists: here a list whose item is called `LARGE_ITEM` stands for one, and the bytes are turned into a real one and back.
 * Of booleans that are all null it writes no values, which other readers refuse: they get the bits of the validity. Slices of large text
 * it does not write.
 */

import * as arrow from 'apache-arrow';

export const LARGE_ITEM = 'large_item';

const LIST = 12;
const LARGE_LIST = 21;

/** A table of a FlatBuffer, read by the number of its slot. */
class FlatTable {
  readonly #view: DataView;
  readonly #at: number;

  constructor(view: DataView, at: number) {
    this.#view = view;
    this.#at = at;
  }

  static root(view: DataView, at = 0): FlatTable {
    return new FlatTable(view, at + view.getUint32(at, true));
  }

  /** Where the slot's value lies; 0 when it has the default. */
  place(slot: number): number {
    const vtable = this.#at - this.#view.getInt32(this.#at, true);
    const at = 4 + slot * 2;
    const offset = at < this.#view.getUint16(vtable, true) ? this.#view.getUint16(vtable + at, true) : 0;
    return offset === 0 ? 0 : this.#at + offset;
  }

  #follow(slot: number): number {
    const place = this.place(slot);
    return place === 0 ? 0 : place + this.#view.getUint32(place, true);
  }

  table(slot: number): FlatTable | undefined {
    const at = this.#follow(slot);
    return at === 0 ? undefined : new FlatTable(this.#view, at);
  }

  text(slot: number): string {
    const at = this.#follow(slot);
    if (at === 0) return '';
    return new TextDecoder().decode(
      new Uint8Array(this.#view.buffer, this.#view.byteOffset + at + 4, this.#length(at)),
    );
  }

  byte(slot: number): number {
    const place = this.place(slot);
    return place === 0 ? 0 : this.#view.getUint8(place);
  }

  long(slot: number): number {
    const place = this.place(slot);
    return place === 0 ? 0 : Number(this.#view.getBigInt64(place, true));
  }

  /** Where each struct of a vector lies. */
  structs(slot: number, size: number): number[] {
    const at = this.#follow(slot);
    return at === 0 ? [] : Array.from({ length: this.#length(at) }, (_, i) => at + 4 + i * size);
  }

  tables(slot: number): FlatTable[] {
    return this.structs(slot, 4).map((at) => new FlatTable(this.#view, at + this.#view.getUint32(at, true)));
  }

  #length(at: number): number {
    return this.#view.getUint32(at, true);
  }
}

interface Column {
  readonly type: number;
  readonly isDictionary: boolean;
  readonly isLarge: boolean;
  readonly children: readonly Column[];
}

const enum Header {
  Schema = 1,
  Dictionary = 2,
  Batch = 3,
}

/** Renames the type of every list that stands for a large one, or of every large list, in place. */
function retype(view: DataView, fields: readonly FlatTable[], toLarge: boolean): Column[] {
  return fields.map((field) => {
    const children = field.tables(5);
    const type = field.byte(2);
    const isLarge = toLarge ? type === LIST && children[0]?.text(0) === LARGE_ITEM : type === LARGE_LIST;
    if (isLarge) view.setUint8(field.place(2), toLarge ? LARGE_LIST : LIST);
    return { type, isDictionary: field.place(4) !== 0, isLarge, children: retype(view, children, toLarge) };
  });
}

/** The buffers of columns in pre-order: what each is for. */
function* buffersOf(columns: readonly Column[]): Generator<{ column: Column; kind: 'validity' | 'offsets' | 'data' }> {
  for (const column of columns) {
    const { type, isDictionary, children } = column;
    if (isDictionary) {
      yield { column, kind: 'validity' };
      yield { column, kind: 'data' };
      continue;
    }
    if (type === arrow.Type.Null) continue;
    yield { column, kind: 'validity' };
    const hasOffsets = ([LIST, LARGE_LIST, arrow.Type.Map, arrow.Type.Utf8, arrow.Type.Binary] as number[])
      .concat([arrow.Type.LargeUtf8, arrow.Type.LargeBinary])
      .includes(type);
    if (hasOffsets) yield { column, kind: 'offsets' };
    const isNested = (
      [LIST, LARGE_LIST, arrow.Type.Map, arrow.Type.Struct, arrow.Type.FixedSizeList] as number[]
    ).includes(type);
    if (!isNested) yield { column, kind: 'data' };
    yield* buffersOf(children);
  }
}

const align = (length: number): number => (length + 63) & ~63;

/** The body of a batch with its offsets of another width; the message's buffers, in place, are where they now lie. */
function rebuildBody(
  view: DataView,
  batch: FlatTable,
  columns: readonly Column[],
  body: Uint8Array,
  toLarge: boolean,
): Uint8Array {
  const places = batch.structs(2, 16);
  for (const node of batch.structs(1, 16)) {
    // Of nulls in lists it does not know the number.
    if (view.getBigInt64(node + 8, true) < 0n) view.setBigInt64(node + 8, view.getBigInt64(node, true), true);
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  let validity = new Uint8Array(0);
  let at = 0;
  for (const { column, kind } of buffersOf(columns)) {
    const place = places[at++];
    if (place === undefined) throw new Error('a batch has fewer buffers than its schema');
    const [offset, length] = [Number(view.getBigInt64(place, true)), Number(view.getBigInt64(place + 8, true))];
    let part = body.slice(offset, offset + length);
    if (kind === 'validity') validity = part;
    if (column.type === arrow.Type.Bool && kind === 'data' && part.length === 0) part = validity;
    if (column.isLarge && kind === 'offsets') {
      const wide = toLarge ? BigInt64Array.from(new Int32Array(part.buffer, 0, length >> 2), BigInt) : undefined;
      const narrow = toLarge ? undefined : Int32Array.from(new BigInt64Array(part.buffer, 0, length >> 3), Number);
      part = new Uint8Array((wide ?? narrow)?.buffer ?? part.buffer);
    }
    view.setBigInt64(place, BigInt(size), true);
    view.setBigInt64(place + 8, BigInt(part.length), true);
    parts.push(part);
    size += align(part.length);
  }
  const rebuilt = new Uint8Array(size);
  let end = 0;
  for (const part of parts) {
    rebuilt.set(part, end);
    end += align(part.length);
  }
  return rebuilt;
}

function footerOf(file: Uint8Array<ArrayBuffer>): { view: DataView; root: FlatTable } {
  const length = new DataView(file.buffer, file.length - 10).getUint32(0, true);
  const view = new DataView(file.buffer, file.length - 10 - length, length);
  return { view, root: FlatTable.root(view) };
}

function convert(bytes: Uint8Array, toLarge: boolean): Uint8Array {
  // A copy: also of a `Buffer`, whose own `slice` is none.
  const source = new Uint8Array(bytes);
  const isFile = new TextDecoder().decode(source.subarray(0, 6)) === 'ARROW1';
  const out: Uint8Array[] = isFile ? [source.slice(0, 8)] : [];
  let written = isFile ? 8 : 0;
  // A file of `apache-arrow` has its schema in the footer only.
  const footer = isFile ? footerOf(source) : undefined;
  let columns = footer === undefined ? [] : retype(footer.view, footer.root.table(1)?.tables(1) ?? [], toLarge);
  /** Where the messages of a file have moved to, for its footer. */
  const moved = new Map<number, { at: number; bodyLength: number }>();
  let at = written;
  // Some writers align the first message of a file to more than 8 bytes.
  while (isFile && at + 4 < source.length && new DataView(source.buffer, at).getUint32(0, true) === 0) at += 8;
  for (;;) {
    const frame = new DataView(source.buffer, at);
    // The end: the mark for it, the same of older writers, or the end of the bytes.
    if (frame.byteLength === 0 || frame.getUint32(0, true) === 0) break;
    if (frame.getUint32(0, true) !== 0xffff_ffff) throw new Error('no IPC message');
    const length = frame.getUint32(4, true);
    if (length === 0) break;
    const view = new DataView(source.buffer, at + 8, length);
    const message = FlatTable.root(view);
    const header = message.table(2);
    const bodyLength = message.long(3);
    const body = source.subarray(at + 8 + length, at + 8 + length + bodyLength);
    let rebuilt: Uint8Array = body;
    if (message.byte(1) === Header.Schema) columns = retype(view, header?.tables(1) ?? [], toLarge);
    if (message.byte(1) === Header.Batch && header !== undefined) {
      rebuilt = rebuildBody(view, header, columns, body, toLarge);
      if (message.place(3) !== 0) view.setBigInt64(message.place(3), BigInt(rebuilt.length), true);
    }
    moved.set(at, { at: written, bodyLength: rebuilt.length });
    out.push(source.subarray(at, at + 8 + length), rebuilt);
    written += 8 + length + rebuilt.length;
    at += 8 + length + bodyLength;
  }
  const rest = source.subarray(at);
  if (footer !== undefined) {
    const { view, root } = footer;
    for (const block of [...root.structs(2, 24), ...root.structs(3, 24)]) {
      const to = moved.get(Number(view.getBigInt64(block, true)));
      if (to === undefined) throw new Error('a block of the footer is no message');
      view.setBigInt64(block, BigInt(to.at), true);
      view.setBigInt64(block + 16, BigInt(to.bodyLength), true);
    }
  }
  return new Uint8Array(Buffer.concat([...out, rest]));
}

/** A table as an IPC file or stream, with real large lists. */
export function toIpc(table: arrow.Table, format: 'file' | 'stream'): Uint8Array {
  const batches = table.batches.map(fromZero);
  return convert(arrow.tableToIPC(new arrow.Table(table.schema, batches), format), true);
}

/** The batch with large text that begins at 0, at every depth: it does not write slices of it. */
function fromZero(batch: arrow.RecordBatch): arrow.RecordBatch {
  const columns = batch.data.children.map(dataFromZero);
  const data = arrow.makeData({ type: batch.data.type, length: batch.numRows, nullCount: 0, children: columns });
  return new arrow.RecordBatch(batch.schema, data);
}

function dataFromZero(data: arrow.Data): arrow.Data {
  const { type, offset, length, nullCount } = data;
  const { valueOffsets, values, nullBitmap } = data as unknown as {
    valueOffsets: Int32Array | BigInt64Array;
    values: Uint8Array;
    nullBitmap: Uint8Array;
  };
  const [items] = data.children;
  if (arrow.DataType.isLargeUtf8(type) || arrow.DataType.isLargeBinary(type)) {
    const wide = BigInt64Array.from(valueOffsets as BigInt64Array);
    const moved = wide.map((each) => each - (wide[0] ?? 0n)).slice(0, length + 1);
    const part = values.subarray(Number(wide[0]), Number(wide[length]));
    return arrow.makeData({
      type: type as arrow.LargeBinary,
      offset,
      length,
      nullCount,
      nullBitmap,
      data: part,
      valueOffsets: moved,
    });
  }
  if ((arrow.DataType.isList(type) || arrow.DataType.isMap(type)) && items !== undefined) {
    const own = valueOffsets as Int32Array;
    const [first = 0, last = 0] = [own[0], own[length]];
    const child = dataFromZero(items.slice(first, last - first));
    const moved = own.slice(0, length + 1).map((each) => each - first);
    return arrow.makeData({
      type: type as arrow.List,
      offset,
      length,
      nullCount,
      nullBitmap,
      valueOffsets: moved,
      child,
    });
  }
  if (data.children.length === 0) return data;
  return data.clone(type, offset, length, nullCount, data.buffers as never, data.children.map(dataFromZero));
}

/** IPC bytes as a table, whose large lists are plain ones. */
export function fromIpc(bytes: Uint8Array): arrow.Table {
  return arrow.tableFromIPC(convert(bytes, false));
}
