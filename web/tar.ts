// Tar: a table's folder as one file, in the ustar form that every `tar` reads. For browsers that cannot write a folder.
//
// An entry is a header of 512 bytes, then the bytes padded to 512. Two blocks of zeros end the archive.

const BLOCK = 512;
/** Eleven octal digits. */
const MAX_SIZE = 8 ** 11 - 1;

export interface TarEntry {
  readonly path: string;
  readonly body: Blob;
}

/** An archive of the entries, in their order. Bodies are not copied: the result refers to them. */
export function writeTar(entries: readonly TarEntry[], modified: Date): Blob {
  const parts: BlobPart[] = [];
  for (const { path, body } of entries) {
    parts.push(header(path, body.size, modified), body, new Uint8Array(padding(body.size)));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts, { type: 'application/x-tar' });
}

/** The files of an archive; folders and links are left out. Throws when the bytes are not a ustar archive. */
export async function readTar(archive: Blob): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  let at = 0;
  while (at + BLOCK <= archive.size) {
    const block = new Uint8Array(await archive.slice(at, at + BLOCK).arrayBuffer());
    if (block.every((byte) => byte === 0)) return entries;
    if (text(block, 257, 5) !== 'ustar' || octal(block, 148, 8) !== checksum(block)) {
      throw new Error(`not a tar archive: no header at byte ${at}`);
    }
    const size = octal(block, 124, 12);
    const start = at + BLOCK;
    if (start + size > archive.size)
      throw new Error(`the tar archive is cut: ${start + size} bytes expected, ${archive.size} found`);
    const prefix = text(block, 345, 155);
    const name = text(block, 0, 100);
    const kind = text(block, 156, 1);
    if (kind === '0' || kind === '') {
      entries.push({ path: prefix === '' ? name : `${prefix}/${name}`, body: archive.slice(start, start + size) });
    }
    at = start + size + padding(size);
  }
  throw new Error('the tar archive has no end');
}

function header(path: string, size: number, modified: Date): Uint8Array<ArrayBuffer> {
  if (size > MAX_SIZE) throw new RangeError(`${path}: ${size} bytes do not fit a tar archive`);
  const block = new Uint8Array(BLOCK);
  const [prefix, name] = splitPath(path);
  put(block, 0, name);
  put(block, 100, '0000644\0' + '0000000\0' + '0000000\0');
  put(block, 124, `${size.toString(8).padStart(11, '0')} `);
  put(
    block,
    136,
    `${Math.floor(modified.getTime() / 1000)
      .toString(8)
      .padStart(11, '0')} `,
  );
  put(block, 156, '0');
  put(block, 257, 'ustar\0' + '00');
  put(block, 345, prefix);
  put(block, 148, `${checksum(block).toString(8).padStart(6, '0')}\0 `);
  return block;
}

/** A long path goes into two fields, cut at a slash: at most 155 and 100 bytes. */
function splitPath(path: string): readonly [prefix: string, name: string] {
  const length = (part: string) => new TextEncoder().encode(part).length;
  if (length(path) <= 100) return ['', path];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
    const prefix = path.slice(0, slash);
    const name = path.slice(slash + 1);
    if (name !== '' && length(name) <= 100 && length(prefix) <= 155) return [prefix, name];
  }
  throw new RangeError(`the path is too long for a tar archive: ${path}`);
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

/** The sum of the header's bytes, its own field counted as spaces. */
function checksum(block: Uint8Array): number {
  return block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}

function put(block: Uint8Array, at: number, value: string): void {
  block.set(new TextEncoder().encode(value), at);
}

function text(block: Uint8Array, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end === -1 ? field : field.subarray(0, end));
}

function octal(block: Uint8Array, at: number, length: number): number {
  return parseInt(text(block, at, length).trim() || '0', 8);
}
