/**
 * Arrow data of any copy of `apache-arrow`: recognised by its shape, and rebuilt in ours from its type ids and buffers.
 *
 * An application may load another version than this library, or the same one twice: `instanceof` would fail on both, and so would
 * our writer on their objects. The buffers are shared, not copied.
 */

import * as arrow from 'apache-arrow';
import type { Data, DataType, Field, RecordBatch, Schema } from 'apache-arrow';

import { LanceError } from '../errors';

/** A schema of any `apache-arrow`. */
export interface SchemaLike {
  readonly fields: readonly FieldLike[];
  readonly metadata?: ReadonlyMap<string, string> | null | undefined;
}

/** A field of any `apache-arrow`. */
export interface FieldLike {
  readonly name: string;
  readonly type: unknown;
  readonly nullable: boolean;
  readonly metadata?: ReadonlyMap<string, string> | null | undefined;
}

/** A record batch of any `apache-arrow`. */
export interface RecordBatchLike {
  readonly schema: SchemaLike;
  readonly data: unknown;
  readonly numRows: number;
}

/** A table of any `apache-arrow`. */
export interface ArrowTableLike {
  readonly schema: SchemaLike;
  readonly batches: readonly RecordBatchLike[];
}

interface TypeLike {
  readonly typeId: number;
  readonly children?: readonly FieldLike[] | null;
  readonly bitWidth?: number;
  readonly isSigned?: boolean;
  readonly precision?: number;
  readonly scale?: number;
  readonly unit?: number;
  readonly timezone?: string | null;
  readonly byteWidth?: number;
  readonly listSize?: number;
  readonly keysSorted?: boolean;
  readonly dictionary?: unknown;
  readonly indices?: unknown;
  readonly id?: number;
  readonly isOrdered?: boolean;
}

interface DataLike {
  readonly type: TypeLike;
  readonly offset: number;
  readonly length: number;
  readonly nullCount: number;
  readonly values?: ArrayBufferView;
  readonly valueOffsets?: ArrayBufferView;
  readonly nullBitmap?: ArrayBufferView;
  readonly children: readonly DataLike[];
  readonly dictionary?: { readonly data: readonly DataLike[] };
}

type Shape = Readonly<Record<PropertyKey, unknown>>;

const isObject = (value: unknown): value is Shape => typeof value === 'object' && value !== null;

export function isSchemaLike(value: unknown): value is SchemaLike {
  if (!isObject(value) || !Array.isArray(value['fields'])) return false;
  return value['fields'].every(
    (field) => isObject(field) && typeof field['name'] === 'string' && isTypeLike(field['type']),
  );
}

export function isRecordBatchLike(value: unknown): value is RecordBatchLike {
  if (!isObject(value) || typeof value['numRows'] !== 'number' || 'batches' in value) return false;
  return isSchemaLike(value['schema']) && isObject(value['data']) && Array.isArray(value['data']['children']);
}

export function isArrowTableLike(value: unknown): value is ArrowTableLike {
  return isObject(value) && Array.isArray(value['batches']) && isSchemaLike(value['schema']);
}

/** A vector of any `apache-arrow`, as the cells of list columns are. */
export function isVectorLike(value: unknown): value is {
  readonly length: number;
  readonly nullCount: number;
  get(index: number): unknown;
} {
  return (
    isObject(value) &&
    typeof value['length'] === 'number' &&
    typeof value['get'] === 'function' &&
    typeof value['toArray'] === 'function' &&
    isTypeLike(value['type'])
  );
}

function isTypeLike(value: unknown): value is TypeLike {
  return isObject(value) && typeof value['typeId'] === 'number';
}

export function toOurSchema(schema: SchemaLike): Schema {
  return new arrow.Schema(
    schema.fields.map((field) => toOurField(field, field.name)),
    new Map(schema.metadata ?? []),
  );
}

export function toOurBatch(batch: RecordBatchLike): RecordBatch {
  const schema = toOurSchema(batch.schema);
  const struct = batch.data as DataLike;
  const children = schema.fields.map((field, i) => toOurData(field.type, struct.children[i], field.name));
  const type = new arrow.Struct(schema.fields);
  const data = arrow.makeData({ type, length: batch.numRows, nullCount: 0, children });
  return new arrow.RecordBatch(schema, data);
}

function toOurField(field: FieldLike, path: string): Field {
  return new arrow.Field(field.name, toOurType(field.type, path), field.nullable, new Map(field.metadata ?? []));
}

/** A type of any `apache-arrow`; `path` is the column's, for messages. */
export function toOurType(type: unknown, path: string): DataType {
  if (!isTypeLike(type)) throw new LanceError('SCHEMA', `column "${path}" has no Arrow type`);
  const children = (type.children ?? []).map((child) => toOurField(child, `${path}.${child.name}`));
  const only = (): Field => {
    const [child] = children;
    if (child === undefined) throw new LanceError('SCHEMA', `column "${path}": a nested type without a child`);
    return child;
  };
  switch (type.typeId) {
    case arrow.Type.Null:
      return new arrow.Null();
    case arrow.Type.Int:
      return intType(type, path);
    case arrow.Type.Float:
      return new arrow.Float((type.precision ?? 2) as arrow.Precision);
    case arrow.Type.Bool:
      return new arrow.Bool();
    case arrow.Type.Utf8:
      return new arrow.Utf8();
    case arrow.Type.LargeUtf8:
      return new arrow.LargeUtf8();
    case arrow.Type.Binary:
      return new arrow.Binary();
    case arrow.Type.LargeBinary:
      return new arrow.LargeBinary();
    case arrow.Type.FixedSizeBinary:
      return new arrow.FixedSizeBinary(type.byteWidth ?? 0);
    case arrow.Type.Decimal:
      return new arrow.Decimal(type.scale ?? 0, type.precision ?? 0, type.bitWidth ?? 128);
    case arrow.Type.Date:
      return type.unit === arrow.DateUnit.DAY ? new arrow.DateDay() : new arrow.DateMillisecond();
    case arrow.Type.Time:
      return new arrow.Time((type.unit ?? 0) as arrow.TimeUnit, (type.bitWidth ?? 32) as 32 | 64);
    case arrow.Type.Timestamp:
      return new arrow.Timestamp((type.unit ?? 0) as arrow.TimeUnit, type.timezone ?? null);
    case arrow.Type.Duration:
      return new arrow.Duration((type.unit ?? 0) as arrow.TimeUnit);
    case arrow.Type.List:
      return new arrow.List(only());
    case arrow.Type.FixedSizeList:
      return new arrow.FixedSizeList(type.listSize ?? 0, only());
    case arrow.Type.Struct:
      return new arrow.Struct(children);
    case arrow.Type.Map:
      return new arrow.Map_(
        only() as unknown as Field<arrow.Struct<{ key: DataType; value: DataType }>>,
        type.keysSorted,
      );
    case arrow.Type.Dictionary: {
      const indices = toOurType(type.indices, path) as arrow.Dictionary['indices'];
      return new arrow.Dictionary(toOurType(type.dictionary, path), indices, type.id, type.isOrdered);
    }
    default:
      throw new LanceError('NOT_SUPPORTED', `not supported: column "${path}" of type ${String(type)}`, {
        feature: String(type),
      });
  }
}

function intType(type: TypeLike, path: string): DataType {
  switch (`${type.isSigned === true ? 'i' : 'u'}${type.bitWidth}`) {
    case 'i8':
      return new arrow.Int8();
    case 'i16':
      return new arrow.Int16();
    case 'i32':
      return new arrow.Int32();
    case 'i64':
      return new arrow.Int64();
    case 'u8':
      return new arrow.Uint8();
    case 'u16':
      return new arrow.Uint16();
    case 'u32':
      return new arrow.Uint32();
    case 'u64':
      return new arrow.Uint64();
    default:
      throw new LanceError('SCHEMA', `column "${path}": an integer of ${type.bitWidth} bits`);
  }
}

/** Offsets and slices mean the same in every version: value and offset buffers start at the slice, bits are counted from `offset`. */
function toOurData(type: DataType, data: DataLike | undefined, path: string): Data {
  if (data === undefined) throw new LanceError('SCHEMA', `column "${path}" is declared but has no data`);
  const children = (type.children ?? []).map((child: Field, i: number) =>
    toOurData(child.type, data.children[i], `${path}.${child.name}`),
  );
  const dictionary = arrow.DataType.isDictionary(type)
    ? new arrow.Vector((data.dictionary?.data ?? []).map((part) => toOurData(type.dictionary, part, path)))
    : undefined;
  const props = {
    type,
    offset: data.offset,
    length: data.length,
    nullCount: data.nullCount,
    nullBitmap: data.nullCount === 0 ? undefined : data.nullBitmap,
    data: data.values,
    valueOffsets: data.valueOffsets,
    children,
    child: children[0],
    dictionary,
  };
  return arrow.makeData(props as unknown as Parameters<typeof arrow.makeData>[0]) as Data;
}
