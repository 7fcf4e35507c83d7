/** Random columns of nested types that LanceDB stores, and the shapes that it stores but does not read back. */

import * as arrow from 'apache-arrow';

import { LARGE_ITEM } from '../interop/ipc';
import { dictionaryOf, field, fixedListOf, mapOf, structOf } from '../interop/build';
import type { FormatVersion } from '../interop/matrix';
import type { Random } from '../interop/random';

interface Place {
  readonly version: FormatVersion;
  readonly depth: number;
  readonly hasList: boolean;
  readonly hasFixedList: boolean;
  /** Below a struct that may be null. */
  readonly hasNull: boolean;
}

const MAX_DEPTH = 5;

export function randomField(name: string, version: FormatVersion, random: Random): arrow.Field {
  // 2.0 has no null structs.
  const place = { version, depth: 0, hasList: false, hasFixedList: false, hasNull: false };
  if (random.chance(0.03)) return packedField(name, random);
  return member(name, place, random);
}

function member(name: string, place: Place, random: Random, mayBeNull = true): arrow.Field {
  const type = typeOf(place, random);
  const isStruct = arrow.DataType.isStruct(type);
  const isNullable = mayBeNull && random.chance(0.75) && !(isStruct && (place.version === '2.0' || isEmpty(type)));
  return field(name, type, arrow.DataType.isNull(type) || isNullable);
}

function isEmpty(type: arrow.DataType): boolean {
  return (
    arrow.DataType.isStruct(type) && (type.children.length === 0 || type.children.some((child) => isEmpty(child.type)))
  );
}

function packedField(name: string, random: Random): arrow.Field {
  const leaves = [new arrow.Int32(), new arrow.Float64(), new arrow.Uint8(), new arrow.Int64()];
  const fields = Array.from({ length: random.between(1, 3) }, (_, i) => field(`p${i}`, random.pick(leaves), false));
  return field(name, structOf(...fields), false, new Map([['packed', 'true']]));
}

function typeOf(place: Place, random: Random): arrow.DataType {
  const isNested = place.depth < MAX_DEPTH && random.chance(place.depth === 0 ? 0.7 : 0.45);
  if (!isNested) return leaf(place, random);
  const below = { ...place, depth: place.depth + 1 };
  const inList = { ...below, hasList: true };
  const kind = random.pick([
    'list',
    'list',
    'large_list',
    'struct',
    'struct',
    'fixed_list',
    'map',
    'dictionary',
  ] as const);
  const takesLists = !place.hasFixedList;
  switch (kind) {
    case 'list':
      if (!takesLists) return leaf(place, random);
      return new arrow.List(member('item', inList, random));
    case 'large_list':
      if (!takesLists) return leaf(place, random);
      return new arrow.List(member(LARGE_ITEM, inList, random));
    case 'struct':
      return structType(below, random);
    case 'fixed_list':
      return fixedList(below, random);
    case 'map': {
      if (!takesLists || place.version !== '2.2') return leaf(place, random);
      const key = random.pick([new arrow.Utf8(), new arrow.Int32(), new arrow.Int64(), new arrow.Binary()]);
      const map = mapOf(key, new arrow.Null());
      const value = member('value', inList, random);
      const [first] = (map.children[0] as unknown as arrow.Field<arrow.Struct>).type.children;
      return new arrow.Map_(field('entries', structOf(first as arrow.Field, value), false) as never);
    }
    case 'dictionary':
      return dictionary(place, random);
  }
}

function structType(place: Place, random: Random): arrow.DataType {
  const isEmptyTaken =
    !place.hasList && !place.hasFixedList && !place.hasNull && place.depth === 1 && place.version !== '2.0';
  if (isEmptyTaken && random.chance(0.03)) return structOf();
  return structOf(
    ...Array.from({ length: random.between(1, 3) }, (_, i) => member(`f${i}`, { ...place, hasNull: true }, random)),
  );
}

function fixedList(place: Place, random: Random): arrow.DataType {
  const size = random.pick([1, 2, 3, 4, 7, 16]);
  if (random.chance(0.25) && place.version === '2.2' && !place.hasList) {
    const inside = { ...place, hasFixedList: true };
    const members = Array.from({ length: random.between(1, 2) }, (_, i) =>
      member(`f${i}`, { ...inside, hasNull: true }, random),
    );
    return new arrow.FixedSizeList(size, field('item', structOf(...members)));
  }
  if (random.chance(0.2)) return fixedListOf(size, fixedListOf(random.between(1, 3), fixedWidth(random)));
  return fixedListOf(random.chance(0.15) ? 70 : size, fixedWidth(random));
}

function dictionary(place: Place, random: Random): arrow.DataType {
  const indices = [new arrow.Int8(), new arrow.Int16(), new arrow.Int32(), new arrow.Uint16(), new arrow.Int64()];
  // 2.0 has dictionaries of text only.
  const values =
    place.version === '2.0'
      ? [new arrow.Utf8()]
      : [
          new arrow.Utf8(),
          new arrow.Utf8(),
          new arrow.LargeUtf8(),
          new arrow.Binary(),
          new arrow.Int64(),
          new arrow.Float64(),
        ];
  return dictionaryOf(random.pick(values), random.pick(indices));
}

function fixedWidth(random: Random): arrow.DataType {
  return random.pick([
    () => new arrow.Float32(),
    () => new arrow.Float32(),
    () => new arrow.Float64(),
    () => new arrow.Float16(),
    () => new arrow.Uint8(),
    () => new arrow.Int64(),
    () => new arrow.Bool(),
    () => new arrow.TimestampMicrosecond(),
    () => new arrow.Decimal(2, 20, 128),
    () => new arrow.FixedSizeBinary(3),
  ])();
}

function leaf(place: Place, random: Random): arrow.DataType {
  // LanceDB does not write a column of nulls in what may itself be null.
  if (!place.hasNull && !place.hasFixedList && place.version !== '2.0' && random.chance(0.04)) return new arrow.Null();
  return random.pick([
    () => new arrow.Bool(),
    () => new arrow.Int8(),
    () => new arrow.Int16(),
    () => new arrow.Int32(),
    () => new arrow.Int64(),
    () => new arrow.Uint8(),
    () => new arrow.Uint16(),
    () => new arrow.Uint32(),
    () => new arrow.Uint64(),
    () => new arrow.Float16(),
    () => new arrow.Float32(),
    () => new arrow.Float64(),
    () => new arrow.Decimal(2, 9, 128),
    () => new arrow.Decimal(5, 50, 256),
    () => new arrow.DateDay(),
    () => new arrow.DateMillisecond(),
    () => new arrow.TimeSecond(),
    () => new arrow.TimeNanosecond(),
    () => new arrow.TimestampMicrosecond(),
    () => new arrow.Timestamp(arrow.TimeUnit.SECOND, 'UTC'),
    () => new arrow.Duration(arrow.TimeUnit.MILLISECOND),
    () => new arrow.Utf8(),
    () => new arrow.Utf8(),
    () => new arrow.Utf8(),
    () => new arrow.LargeUtf8(),
    () => new arrow.Binary(),
    () => new arrow.LargeBinary(),
    () => new arrow.FixedSizeBinary(random.pick([1, 2, 3, 16, 260])),
  ])();
}

/** Whether LanceDB reads the column only by itself: it holds a fixed-size list of structs, or is a struct of no fields. */
export function isReadApart(type: arrow.DataType): boolean {
  return hasFixedListOfStructs(type) || isEmpty(type);
}

function hasFixedListOfStructs(type: arrow.DataType): boolean {
  const children = (type.children ?? []) as arrow.Field[];
  if (arrow.DataType.isFixedSizeList(type) && arrow.DataType.isStruct(children[0]?.type)) return true;
  return children.some((child) => hasFixedListOfStructs(child.type));
}

/**
 * The shapes that LanceDB writes and misreads itself (see "Every type, beside LanceDB" in `wasm/docs/format.md`): 1, a struct that may
 * be null over a list whose values are wide; 2, a list over a struct that may be null over two lists; 3, a struct with a fixed-size list
 * of structs beside another member. The first two are in how it reads what it writes, the third in what it reads of anybody.
 */
export function upstreamBugs(column: arrow.Field): ReadonlySet<1 | 2 | 3> {
  const bugs = new Set<1 | 2 | 3>();
  const walk = (each: arrow.Field, hasNullStruct: boolean, hasList: boolean, listsSince: readonly number[]): void => {
    const { type } = each;
    const children = (type.children ?? []) as arrow.Field[];
    const isList = arrow.DataType.isList(type) || arrow.DataType.isMap(type);
    const isStruct = arrow.DataType.isStruct(type);
    // For each struct that may be null in a list: the lists between it and here.
    let lists = isList ? listsSince.map((count) => count + 1) : listsSince;
    if (lists.some((count) => count >= 2)) bugs.add(2);
    if (isStruct && each.nullable && hasList) lists = [...lists, 0];
    const isWide = arrow.DataType.isFixedSizeList(type) || arrow.DataType.isFixedSizeBinary(type) || isText(type);
    if (hasNullStruct && hasList && isWide) bugs.add(1);
    if (isStruct && children.length > 1 && children.some((child) => hasFixedListOfStructs(child.type))) bugs.add(3);
    for (const child of children) walk(child, hasNullStruct || (isStruct && each.nullable), hasList || isList, lists);
  };
  walk(column, false, false, []);
  return bugs;
}

function isText(type: arrow.DataType): boolean {
  return (
    arrow.DataType.isUtf8(type) ||
    arrow.DataType.isLargeUtf8(type) ||
    arrow.DataType.isBinary(type) ||
    arrow.DataType.isLargeBinary(type)
  );
}

/** A column's type as text, with what takes nulls marked. */
export function describe(of: arrow.Field): string {
  const { type } = of;
  const children = ((type.children ?? []) as arrow.Field[]).map(describe);
  const mark = of.nullable ? '?' : '';
  if (arrow.DataType.isStruct(type)) return `struct{${children.join(', ')}}${mark}`;
  if (arrow.DataType.isFixedSizeList(type)) return `fixed[${type.listSize}]<${children.join()}>${mark}`;
  if (arrow.DataType.isMap(type)) return `map<${children.join()}>${mark}`;
  if (arrow.DataType.isList(type))
    return `${type.children[0]?.name === LARGE_ITEM ? 'large_' : ''}list<${children.join()}>${mark}`;
  return `${String(type)}${mark}${of.metadata.get('packed') === 'true' ? ' packed' : ''}`;
}
