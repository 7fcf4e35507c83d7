/**
 * The schema of rows that come without one: LanceDB's rules. Every field is nullable, columns stand in order of first appearance.
 *
 * Two differences: a `Date` is a timestamp in milliseconds, and a vector column refuses elements that are not numbers.
 */

import * as arrow from 'apache-arrow';
import type { DataType, Field, Schema } from 'apache-arrow';

import { LanceError } from '../errors';
import { cellDate, cellItems, isBytesOfNode, isRow, type Row } from './cells';
import { toOurType } from './foreign';

export interface InferOptions {
  /** Top-level columns that are vectors, with the type of their elements. Default: `vector` of Float32. */
  readonly vectorColumns?: Readonly<Record<string, { readonly type: DataType }>>;
  /** Strings become Dictionary<Int32, Utf8>. Default: false. */
  readonly dictionaryEncodeStrings?: boolean;
}

type Kind =
  /** `of`: what `typeof` says of its values. */
  | { readonly kind: 'leaf'; readonly type: DataType; readonly of: string }
  | { readonly kind: 'vector'; readonly element: DataType; readonly size: number }
  | { readonly kind: 'list'; item: Kind | undefined }
  | { readonly kind: 'struct'; readonly fields: Map<string, Kind | undefined>; readonly seen: Map<string, number> };

const VECTOR_NAME = /vector|embedding/i;
const FLOAT64 = new arrow.Float64();
const FLOAT32 = new arrow.Float32();
const INT64 = new arrow.Int64();
const BOOL = new arrow.Bool();
const BINARY = new arrow.Binary();
const MILLISECONDS = new arrow.TimestampMillisecond();

/** Gathers rows and then tells their schema. */
export class SchemaInference {
  readonly #root: Extract<Kind, { kind: 'struct' }> = { kind: 'struct', fields: new Map(), seen: new Map() };
  readonly #options: InferOptions;
  readonly #strings: DataType;

  constructor(options: InferOptions = {}) {
    this.#options = options;
    this.#strings = options.dictionaryEncodeStrings === true ? dictionaryOfStrings() : new arrow.Utf8();
  }

  add(rows: readonly Row[], firstRow: number): void {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      if (!isRow(row)) throw new LanceError('INVALID_INPUT', `invalid input, row ${firstRow + i} is not an object`);
      this.#addFields(this.#root, row, '', firstRow + i);
    }
  }

  schema(): Schema {
    const fields = this.#fields(this.#root, '');
    if (fields.length === 0) {
      throw new LanceError('INVALID_INPUT', 'At least one record or a schema needs to be provided');
    }
    return new arrow.Schema(fields);
  }

  #addFields(struct: Extract<Kind, { kind: 'struct' }>, row: Row, prefix: string, at: number): void {
    for (const name in row) {
      const value = row[name];
      if (value === undefined) continue;
      const known = struct.fields.get(name);
      // The commonest cells, without building their path.
      if (known?.kind === 'leaf' && known.of === typeof value && known.of !== 'object') continue;
      if (!Object.hasOwn(row, name)) continue;
      if (known === undefined && !struct.fields.has(name)) struct.seen.set(name, at);
      if (value === null) {
        if (known === undefined) struct.fields.set(name, undefined);
        continue;
      }
      const kind = this.#merge(known, value, prefix, name, at);
      // An object without fields says nothing.
      if (kind !== undefined || struct.fields.has(name) || !isRow(value)) struct.fields.set(name, kind);
    }
  }

  /** `prefix` and `leaf` make the path of `value`. */
  #merge(known: Kind | undefined, value: unknown, prefix: string, leaf: string, at: number): Kind | undefined {
    if (value === null || value === undefined) return known;
    const path = `${prefix}${leaf}`;
    const items = cellItems(value);
    if (items !== undefined && !isBytesOfNode(value)) return this.#mergeItems(known, items, prefix, leaf, at);
    const type = this.#leafType(value);
    if (type !== undefined) {
      if (known === undefined) return { kind: 'leaf', type, of: typeof value };
      if (known.kind === 'leaf' && known.type === type) return known;
      throw conflict(known, type.toString(), path, at);
    }
    if (!isRow(value)) throw notInferred(path, at);
    if (known !== undefined && known.kind !== 'struct') throw conflict(known, 'Struct', path, at);
    const struct = known ?? { kind: 'struct', fields: new Map(), seen: new Map() };
    this.#addFields(struct, value, `${path}.`, at);
    return struct.fields.size === 0 ? undefined : struct;
  }

  #mergeItems(
    known: Kind | undefined,
    items: ArrayLike<unknown>,
    prefix: string,
    leaf: string,
    at: number,
  ): Kind | undefined {
    const path = `${prefix}${leaf}`;
    const isTyped = ArrayBuffer.isView(items);
    const element = isTyped ? elementType(items) : this.#vectorElement(prefix, leaf);
    if (isTyped && element === undefined) throw notInferred(path, at);
    if (element !== undefined) {
      const holds = isTyped ? 'numbers' : itemsHold(items);
      if (holds === 'others') throw notInferred(path, at);
      if (known === undefined) {
        return holds === 'nothing' ? undefined : { kind: 'vector', element, size: items.length };
      }
      const isSame =
        known.kind === 'vector' && known.size === items.length && known.element.toString() === element.toString();
      const found = items.length === 0 && !isTyped ? 'List[0]' : `FixedSizeList[${items.length}]<${element}>`;
      if (!isSame) throw conflict(known, found, path, at);
      return known;
    }
    if (known !== undefined && known.kind !== 'list') throw conflict(known, 'List', path, at);
    let item = known?.item;
    for (let i = 0; i < items.length; i++) {
      // As in LanceDB: items are values of one type, or lists; not objects.
      const value = items[i];
      const type = this.#leafType(value);
      const isMixed = item?.kind === 'leaf' && type !== undefined && type !== item.type;
      if (isMixed || (isRow(value) && type === undefined && cellItems(value) === undefined)) {
        throw notInferred(path, at);
      }
      item = this.#merge(item, value, `${path}.`, 'item', at);
    }
    return { kind: 'list', item };
  }

  #vectorElement(prefix: string, leaf: string): DataType | undefined {
    const columns = this.#options.vectorColumns ?? {};
    if (prefix === '' && Object.hasOwn(columns, leaf)) return toOurType(columns[leaf]?.type, leaf);
    return VECTOR_NAME.test(leaf) ? FLOAT32 : undefined;
  }

  #leafType(value: unknown): DataType | undefined {
    switch (typeof value) {
      case 'number':
        return FLOAT64;
      case 'bigint':
        return INT64;
      case 'string':
        return this.#strings;
      case 'boolean':
        return BOOL;
      default:
        if (isBytesOfNode(value)) return BINARY;
        return cellDate(value) !== undefined ? MILLISECONDS : undefined;
    }
  }

  #fields(struct: Extract<Kind, { kind: 'struct' }>, prefix: string): Field[] {
    const fields: Field[] = [];
    for (const [name, kind] of struct.fields) {
      const path = `${prefix}${name}`;
      fields.push(new arrow.Field(name, this.#type(kind, path, struct.seen.get(name) ?? 0), true));
    }
    return fields;
  }

  #type(kind: Kind | undefined, path: string, at: number): DataType {
    switch (kind?.kind) {
      case undefined:
        throw notInferred(path, at);
      case 'leaf':
        // The dictionary of each column has an id of its own.
        return arrow.DataType.isDictionary(kind.type) ? dictionaryOfStrings() : kind.type;
      case 'vector':
        return new arrow.FixedSizeList(kind.size, new arrow.Field('item', kind.element, true));
      case 'list':
        return new arrow.List(new arrow.Field('item', this.#type(kind.item, path, at), true));
      case 'struct':
        return new arrow.Struct(this.#fields(kind, `${path}.`));
    }
  }
}

const dictionaryOfStrings = (): DataType => new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32());

function conflict(known: Kind, found: string, path: string, at: number): LanceError {
  const name = {
    leaf: () => (known as { type: DataType }).type.toString(),
    vector: () => `FixedSizeList[${(known as { size: number }).size}]<${(known as { element: DataType }).element}>`,
    list: () => 'List',
    struct: () => 'Struct',
  }[known.kind]();
  const what = `Previously inferred type ${name} but found ${found} for field ${path} at row ${at}`;
  const message = `Failed to infer schema for data. ${what}. Consider providing an explicit schema.`;
  return new LanceError('SCHEMA', message, { column: path, row: at });
}

function notInferred(path: string, at: number): LanceError {
  const message = `Failed to infer data type for field ${path} at row ${at}. Consider providing an explicit schema.`;
  return new LanceError('SCHEMA', message, { column: path, row: at });
}

/** What an array in a vector column is made of; nulls aside. */
function itemsHold(items: ArrayLike<unknown>): 'numbers' | 'nothing' | 'others' {
  let holds: 'numbers' | 'nothing' = 'nothing';
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (item === null || item === undefined) continue;
    if (typeof item !== 'number' && typeof item !== 'bigint') return 'others';
    holds = 'numbers';
  }
  return holds;
}

function elementType(items: ArrayBufferView): DataType | undefined {
  switch (Object.prototype.toString.call(items)) {
    case '[object Float16Array]':
      return new arrow.Float16();
    case '[object Float32Array]':
      return new arrow.Float32();
    case '[object Float64Array]':
      return new arrow.Float64();
    case '[object Int8Array]':
      return new arrow.Int8();
    case '[object Int16Array]':
      return new arrow.Int16();
    case '[object Int32Array]':
      return new arrow.Int32();
    case '[object Uint8Array]':
    case '[object Uint8ClampedArray]':
      return new arrow.Uint8();
    case '[object Uint16Array]':
      return new arrow.Uint16();
    case '[object Uint32Array]':
      return new arrow.Uint32();
    case '[object BigInt64Array]':
      return new arrow.Int64();
    case '[object BigUint64Array]':
      return new arrow.Uint64();
    default:
      return undefined;
  }
}
