/**
 * Arrow IPC bytes of any writer, cut into pieces that the engine reads: one batch each, with the schema and the dictionaries it needs.
 *
 * They are not decoded here: `apache-arrow` lacks types and compressions that the engine has. A message is
 * `[0xffffffff] | u32 length | FlatBuffer | body`; of the FlatBuffer only its kind and the length of the body are looked at.
 */

import { concatBytes } from '../bytes';
import { LanceError } from '../errors';

/** IPC bytes as the engine takes them. */
export interface IpcPieces {
  /** A stream, or a file, without batches. */
  readonly schema: Uint8Array;
  /** Each a stream or a file with one batch. */
  readonly batches: Iterable<Uint8Array>;
}

interface Message {
  readonly kind: number;
  readonly start: number;
  readonly end: number;
}

const SCHEMA = 1;
const DICTIONARY = 2;
const BATCH = 3;
const CONTINUATION = 0xffff_ffff;
const FILE_MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];
const END = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);

/** @throws `INVALID_INPUT` for bytes that are neither an IPC stream nor an IPC file. */
export function splitIpc(bytes: Uint8Array): IpcPieces {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (FILE_MAGIC.every((byte, i) => bytes[i] === byte)) return splitFile(bytes, view);
  const messages = messagesOf(view, 0, bytes.length);
  const first = messages.next();
  if (first.done === true || first.value.kind !== SCHEMA) throw notIpc('it does not begin with a schema');
  const schema = bytes.subarray(first.value.start, first.value.end);
  return { schema: concatBytes([schema, END]), batches: batchesOf(bytes, messages, schema, undefined) };
}

function splitFile(bytes: Uint8Array, view: DataView): IpcPieces {
  const isWhole = bytes.length >= 20 && FILE_MAGIC.every((byte, i) => bytes[bytes.length - 6 + i] === byte);
  const length = isWhole ? view.getUint32(bytes.length - 10, true) : bytes.length;
  const footer = bytes.length - 10 - length;
  if (footer < 8) throw notIpc('a file is cut off');
  const head = bytes.subarray(0, 8);
  const tail = bytes.subarray(footer);
  // Some writers align the first message to more than 8 bytes.
  let start = 8;
  while (start + 4 <= footer && view.getUint32(start, true) === 0) start += 4;
  return {
    schema: concatBytes([head, END, tail]),
    batches: batchesOf(bytes, messagesOf(view, start, footer), head, tail),
  };
}

function* batchesOf(
  bytes: Uint8Array,
  messages: Iterable<Message>,
  head: Uint8Array,
  tail: Uint8Array | undefined,
): Generator<Uint8Array> {
  const dictionaries: Uint8Array[] = [];
  for (const { kind, start, end } of messages) {
    const message = bytes.subarray(start, end);
    if (kind === DICTIONARY) dictionaries.push(message);
    else if (kind === BATCH)
      yield concatBytes([head, ...dictionaries, message, END, ...(tail === undefined ? [] : [tail])]);
    // The schema of a file stands in its footer, too.
    else if (kind !== SCHEMA || tail === undefined) throw notIpc(`a message of the kind ${kind}`);
  }
}

function* messagesOf(view: DataView, from: number, to: number): Generator<Message> {
  const cut = (): LanceError => notIpc('a message is cut off');
  let at = from;
  while (at < to) {
    if (at + 8 > to) throw cut();
    const isMarked = view.getUint32(at, true) === CONTINUATION;
    const start = at + (isMarked ? 8 : 4);
    const length = view.getUint32(start - 4, true);
    if (length === 0) return;
    if (start + length > to) throw cut();
    const { kind, bodyLength } = peek(view, start, length);
    const end = start + length + bodyLength;
    if (end > to) throw cut();
    yield { kind, start: at, end };
    at = end;
  }
}

/** Slot 1 of a message is its kind, slot 3 the length of its body. */
function peek(view: DataView, start: number, length: number): { kind: number; bodyLength: number } {
  const within = (at: number, size: number): number => {
    if (at < start || at + size > start + length) throw notIpc('a message points out of itself');
    return at;
  };
  const root = within(start + view.getUint32(within(start, 4), true), 4);
  const table = within(root - view.getInt32(root, true), 4);
  const size = view.getUint16(table, true);
  const slot = (number: number): number => {
    const place = 4 + number * 2;
    return place + 2 <= size ? view.getUint16(within(table + place, 2), true) : 0;
  };
  const [kindAt, bodyAt] = [slot(1), slot(3)];
  const kind = kindAt === 0 ? 0 : view.getUint8(within(root + kindAt, 1));
  const bodyLength = bodyAt === 0 ? 0 : Number(view.getBigInt64(within(root + bodyAt, 8), true));
  if (bodyLength < 0 || !Number.isSafeInteger(bodyLength)) throw notIpc(`a body of ${bodyLength} bytes`);
  return { kind, bodyLength };
}

function notIpc(reason: string): LanceError {
  return new LanceError('INVALID_INPUT', `invalid input, the bytes are not Arrow IPC: ${reason}`);
}
