/** Tables as files: what leaves and enters in pieces of bounded size. */

import { readAll } from './arrow/source';
import { checkText, invalid } from './checks';
import type { Consistency, Engine, ExportHandle, OpenedTable } from './engine/port';
import type { ExportedFile, ImportedFile, ImportedFiles } from './types';

const PIECE_BYTES = 1024 * 1024;

/** The files of a table, manifests last. The table's versions are kept until the iteration ends. */
export async function* exportFiles(engine: Engine, name: string): AsyncGenerator<ExportedFile, void, undefined> {
  const { handle, entries } = await engine.beginExport(name);
  try {
    for (const { path, sizeBytes } of entries) {
      yield { path, size: sizeBytes, stream: readFile(engine, handle, path, sizeBytes) };
    }
  } finally {
    await engine.endExport(handle);
  }
}

function readFile(engine: Engine, handle: ExportHandle, path: string, size: number): ReadableStream<Uint8Array> {
  let offset = 0;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const length = Math.min(PIECE_BYTES, size - offset);
    if (length > 0) controller.enqueue(await engine.readExport(handle, path, offset, length));
    offset += length;
    if (offset >= size) controller.close();
  };
  // Nothing is read before somebody asks.
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Makes a table of files: all of them, or nothing. */
export async function importFiles(
  engine: Engine,
  name: string,
  files: ImportedFiles,
  consistency: Consistency,
): Promise<OpenedTable> {
  if (typeof files !== 'object' || files === null || !(Symbol.iterator in files || Symbol.asyncIterator in files)) {
    throw invalid(`the files of an import must be iterable, found ${files === null ? 'null' : typeof files}`);
  }
  const handle = await engine.beginImport(name);
  try {
    for await (const file of files) {
      await engine.importFile(handle, checkText('the path of a file', file?.path));
      for await (const chunk of readContent(file)) {
        for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
          // Copied: what crosses may be transferred, and these bytes are the caller's.
          await engine.importBytes(handle, Uint8Array.from(chunk.subarray(start, start + PIECE_BYTES)));
        }
      }
    }
  } catch (error) {
    // The first error is the one to report; files without a table are swept.
    await engine.abortImport(handle).catch(() => undefined);
    throw error;
  }
  return engine.finishImport(handle, consistency);
}

async function* readContent({ path, bytes, blob, stream }: ImportedFile): AsyncGenerator<Uint8Array, void, undefined> {
  if (bytes !== undefined) yield checkBytes(path, bytes);
  else if (blob !== undefined) yield* readAll(blob.stream() as ReadableStream<Uint8Array>);
  else if (stream === undefined) throw invalid(`file ${path} has none of bytes, blob and stream`);
  else if (typeof (stream as ReadableStream).getReader === 'function') {
    for await (const chunk of readAll(stream as ReadableStream<Uint8Array>)) yield checkBytes(path, chunk);
  } else for await (const chunk of stream as AsyncIterable<Uint8Array>) yield checkBytes(path, chunk);
}

function checkBytes(path: string, value: unknown): Uint8Array {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (Object.prototype.toString.call(value) === '[object ArrayBuffer]') return new Uint8Array(value as ArrayBuffer);
  throw invalid(`the content of file ${path} is not bytes`);
}
