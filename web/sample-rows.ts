// Sample rows: sightings of lancelets for a new table, and rows of any schema for a table that somebody brought along.
//
// A row is made from its number alone, so the same call makes the same rows.

import { DataType, type Field, type Schema } from 'apache-arrow';

export type Row = Record<string, unknown>;

const SPECIES = [
  'Branchiostoma lanceolatum',
  'Branchiostoma floridae',
  'Branchiostoma belcheri',
  'Asymmetron lucayanum',
  'Epigonichthys maldivensis',
];
const SITES = [
  { name: 'Helgoland', depthM: 14 },
  { name: 'Bay of Naples', depthM: 6 },
  { name: 'Banyuls-sur-Mer', depthM: 9 },
  { name: 'Tampa Bay', depthM: 2 },
  { name: 'Qingdao', depthM: 11 },
];
const TAGS = ['adult', 'juvenile', 'larva', 'night', 'coarse sand', 'photographed'];
const NOTES = [
  'Buried to the mouth in coarse sand; came out when the water was stirred.',
  'Swam on its side for about two metres, then dug itself in again within a second.',
  'Gonads well visible.',
];
const VECTOR_LENGTH = 16;
const FIRST_SIGHTING = Date.UTC(2024, 3, 1, 6);

const CHUNK_ROWS = 4096;

/** `count` rows in parts, each made when it is asked for: a page that writes many of them keeps answering. */
export async function* inChunks(count: number, make: (length: number, first: number) => Row[]): AsyncGenerator<Row[]> {
  for (let first = 0; first < count; first += CHUNK_ROWS) yield make(Math.min(CHUNK_ROWS, count - first), first);
}

/** Rows `first .. first + count` of the table that a newcomer meets. */
export function sightings(count: number, first = 0): Row[] {
  return Array.from({ length: count }, (_, i) => sighting(first + i));
}

function sighting(number: number): Row {
  const random = randomFrom(number);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  return {
    id: BigInt(number + 1),
    species: pick(SPECIES),
    seenAt: new Date(FIRST_SIGHTING + number * 37 * 60_000),
    lengthMm: Math.round((12 + random() * 48) * 10) / 10,
    alive: random() < 0.9,
    site: pick(SITES),
    // The first row has both, so that their types can be told from it.
    tags: TAGS.filter((_, i) => random() < 0.3 || (number === 0 && i === 0)),
    note: number % 4 === 0 ? pick(NOTES) : null,
    vector: Array.from({ length: VECTOR_LENGTH }, () => Math.fround(random() * 2 - 1)),
  };
}

/** `count` rows that fit a schema, whichever it is. Throws when a column can be neither filled nor left null. */
export function rowsFor(schema: Schema, count: number, first: number): Row[] {
  const known = sighting(first);
  const isSightings =
    schema.fields.length === Object.keys(known).length && schema.fields.every(({ name }) => name in known);
  if (isSightings) return sightings(count, first);
  return Array.from({ length: count }, (_, i) => {
    const random = randomFrom(first + i);
    return Object.fromEntries(schema.fields.map((field) => [field.name, valueOf(field, first + i, random)]));
  });
}

function valueOf(field: Field, number: number, random: () => number): unknown {
  const type = field.type as DataType;
  if (DataType.isInt(type)) {
    const value = type.bitWidth === 8 ? number % 100 : type.bitWidth === 16 ? number % 30_000 : number;
    return type.bitWidth === 64 ? BigInt(value) : value;
  }
  if (DataType.isFloat(type)) return Math.round(random() * 1000) / 10;
  if (DataType.isBool(type)) return random() < 0.5;
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) return `${field.name} ${number}`;
  if (DataType.isDate(type) || DataType.isTimestamp(type)) return new Date(FIRST_SIGHTING + number * 86_400_000);
  if (DataType.isBinary(type) || DataType.isLargeBinary(type)) return randomBytes(6, random);
  if (DataType.isFixedSizeBinary(type)) return randomBytes(type.byteWidth, random);
  if (DataType.isFixedSizeList(type)) {
    return Array.from({ length: type.listSize }, () => valueOf(childOf(type, 0), number, random));
  }
  if (DataType.isList(type)) {
    return Array.from({ length: 1 + Math.floor(random() * 3) }, (_, i) =>
      valueOf(childOf(type, 0), number + i, random),
    );
  }
  if (DataType.isStruct(type)) {
    return Object.fromEntries((type.children as Field[]).map((child) => [child.name, valueOf(child, number, random)]));
  }
  if (field.nullable) return null;
  throw new Error(`no sample values for column "${field.name}" of type ${String(type)}`);
}

function childOf(type: DataType, index: number): Field {
  return (type.children as Field[])[index] as Field;
}

function randomBytes(length: number, random: () => number): Uint8Array {
  return Uint8Array.from({ length }, () => Math.floor(random() * 256));
}

/** Numbers in 0 .. 1 from a seed: the mulberry32 generator. */
function randomFrom(seed: number): () => number {
  let state = (Math.imul(seed + 1, 0x9e3779b1) ^ 0x5bf03635) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
