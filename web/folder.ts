// Folders: Lance tables among the files that somebody picked, dropped or archived, and a table's files as a folder.
//
// A table is a folder that holds `_versions/`. A picked folder may be one, or hold several.

import { readTar } from './tar.ts';

export interface FolderFile {
  /** From the folder that was picked, `/` between segments. */
  readonly path: string;
  readonly body: Blob;
}

/** A table found among files: its paths are those within the table. */
export interface FoundTable {
  readonly name: string;
  readonly files: readonly FolderFile[];
  readonly sizeBytes: number;
}

/** The tables among files, by their folder's name. Branches and generations of a table are tables within it, and come with it. */
export function findTables(files: readonly FolderFile[]): FoundTable[] {
  const roots = outermost(new Set(files.flatMap(({ path }) => rootOf(path))));
  const found = new Map<string, FolderFile[]>(roots.map((root) => [root, []]));
  for (const { path, body } of files) {
    const root = roots.find((candidate) => isWithin(path, candidate));
    if (root !== undefined) found.get(root)?.push({ path: root === '' ? path : path.slice(root.length + 1), body });
  }
  return [...found]
    .map(([root, own]) => ({
      name: (root.split('/').at(-1) || 'imported').replace(/\.lance$/, ''),
      files: own,
      sizeBytes: own.reduce((sum, { body }) => sum + body.size, 0),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The folder that holds a `_versions/` above the path, if there is one. */
function rootOf(path: string): string[] {
  const at = `/${path}`.indexOf('/_versions/');
  return at === -1 ? [] : [path.slice(0, Math.max(0, at - 1))];
}

function outermost(roots: ReadonlySet<string>): string[] {
  const all = [...roots];
  return all.filter((root) => !all.some((other) => other !== root && isWithin(root, other)));
}

function isWithin(path: string, folder: string): boolean {
  return folder === '' || path.startsWith(`${folder}/`);
}

/** Files of `<input webkitdirectory>`, or of a `.tar` archive. */
export async function pickedFiles(list: Iterable<File>): Promise<FolderFile[]> {
  const files: FolderFile[] = [];
  for (const file of list) {
    if (!file.webkitRelativePath && file.name.endsWith('.tar')) files.push(...(await readTar(file)));
    else files.push({ path: file.webkitRelativePath || file.name, body: file });
  }
  return files;
}

/**
 * Files that were dropped on the page. The entries are taken from the event at once: it is empty after the first wait.
 */
export async function droppedFiles(transfer: DataTransfer): Promise<FolderFile[]> {
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const files: FolderFile[] = [];
  for (const entry of entries) await collect(entry, files);
  return files;
}

async function collect(entry: FileSystemEntry, files: FolderFile[]): Promise<void> {
  if (entry.isFile) {
    const body = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    const path = entry.fullPath.replace(/^\//, '');
    if (!path.includes('/') && path.endsWith('.tar')) files.push(...(await readTar(body)));
    else files.push({ path, body });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // A reader answers in parts, an empty one at the end.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return;
    for (const child of part) await collect(child, files);
  }
}

/** Chromium's picker of a folder to write to; other browsers have none. */
export type PickDirectory = (options: { mode: 'readwrite' }) => Promise<FileSystemDirectoryHandle>;

export function directoryPicker(): PickDirectory | undefined {
  const picker: unknown = Reflect.get(window, 'showDirectoryPicker');
  return typeof picker === 'function' ? (options) => picker.call(window, options) : undefined;
}

/** Writes one file under a folder, making the folders between. */
export async function writeInto(
  root: FileSystemDirectoryHandle,
  path: string,
  body: ReadableStream<Uint8Array>,
): Promise<void> {
  const segments = path.split('/');
  const name = segments.pop();
  if (name === undefined || name === '') throw new TypeError(`not a file's path: ${path}`);
  let folder = root;
  for (const segment of segments) folder = await folder.getDirectoryHandle(segment, { create: true });
  const file = await folder.getFileHandle(name, { create: true });
  await body.pipeTo((await file.createWritable()) as WritableStream<Uint8Array>);
}
