/** The types of the interop matrix. */

import * as arrow from 'apache-arrow';

import { dictionaryOf, field, fixedListOf, largeListOf, listOf, mapOf, structOf } from './build';

export interface MatrixType {
  readonly name: string;
  /** The column `c`. */
  readonly field: arrow.Field;
  /** Its text and bytes are longer than 255 bytes, and some longer than 32 KiB. */
  readonly isLong?: boolean;
  /** Why LanceDB itself does not take the type in a version, or in all. */
  readonly refused?: Readonly<Record<string, string>>;
}

const utf8 = new arrow.Utf8();
const int32 = new arrow.Int32();
const float32 = new arrow.Float32();

const units = [
  ['s', arrow.TimeUnit.SECOND],
  ['ms', arrow.TimeUnit.MILLISECOND],
  ['us', arrow.TimeUnit.MICROSECOND],
  ['ns', arrow.TimeUnit.NANOSECOND],
] as const;

const of = (name: string, type: arrow.DataType, more: Omit<MatrixType, 'name' | 'field'> = {}): MatrixType => ({
  name,
  field: field('c', type),
  ...more,
});

const person = structOf(field('name', utf8), field('age', int32));
const packed = new Map([['packed', 'true']]);

export const types: readonly MatrixType[] = [
  of('null', new arrow.Null()),
  of('bool', new arrow.Bool()),
  ...[new arrow.Int8(), new arrow.Int16(), int32, new arrow.Int64()].map((type) => of(`int${type.bitWidth}`, type)),
  ...[new arrow.Uint8(), new arrow.Uint16(), new arrow.Uint32(), new arrow.Uint64()].map((type) =>
    of(`uint${type.bitWidth}`, type),
  ),
  of('float16', new arrow.Float16()),
  of('float32', float32),
  of('float64', new arrow.Float64()),
  of('decimal128(5, 2)', new arrow.Decimal(2, 5, 128)),
  of('decimal128(38, 10)', new arrow.Decimal(10, 38, 128)),
  of('decimal256(76, 20)', new arrow.Decimal(20, 76, 256)),
  of('date32', new arrow.DateDay()),
  of('date64', new arrow.DateMillisecond()),
  of('time32[s]', new arrow.TimeSecond()),
  of('time32[ms]', new arrow.TimeMillisecond()),
  of('time64[us]', new arrow.TimeMicrosecond()),
  of('time64[ns]', new arrow.TimeNanosecond()),
  ...units.map(([name, unit]) => of(`timestamp[${name}]`, new arrow.Timestamp(unit))),
  of('timestamp[us, UTC]', new arrow.Timestamp(arrow.TimeUnit.MICROSECOND, 'UTC')),
  of('timestamp[ns, Europe/Berlin]', new arrow.Timestamp(arrow.TimeUnit.NANOSECOND, 'Europe/Berlin')),
  ...units.map(([name, unit]) => of(`duration[${name}]`, new arrow.Duration(unit))),
  of('utf8', utf8),
  of('utf8, long', utf8, { isLong: true }),
  of('large_utf8', new arrow.LargeUtf8()),
  of('large_utf8, long', new arrow.LargeUtf8(), { isLong: true }),
  of('binary', new arrow.Binary()),
  of('binary, long', new arrow.Binary(), { isLong: true }),
  of('large_binary', new arrow.LargeBinary()),
  of('fixed_size_binary(1)', new arrow.FixedSizeBinary(1)),
  of('fixed_size_binary(16)', new arrow.FixedSizeBinary(16)),
  of('fixed_size_binary(300)', new arrow.FixedSizeBinary(300)),
  of('fixed_size_list<float32>[4]', fixedListOf(4, float32)),
  of('fixed_size_list<float32>[100]', fixedListOf(100, float32)),
  of('fixed_size_list<float16>[8]', fixedListOf(8, new arrow.Float16())),
  of('fixed_size_list<uint8>[3]', fixedListOf(3, new arrow.Uint8())),
  of('fixed_size_list<bool>[9]', fixedListOf(9, new arrow.Bool())),
  of('fixed_size_list<timestamp[us]>[2]', fixedListOf(2, new arrow.TimestampMicrosecond())),
  of('fixed_size_list<decimal128>[2]', fixedListOf(2, new arrow.Decimal(2, 20, 128))),
  of('fixed_size_list<fixed_size_binary(3)>[2]', fixedListOf(2, new arrow.FixedSizeBinary(3))),
  of('fixed_size_list<fixed_size_list<int32>[3]>[2]', fixedListOf(2, fixedListOf(3, int32))),
  of('fixed_size_list<struct>[3]', fixedListOf(3, person)),
  of('list<int32>', listOf(int32)),
  of('list<bool>', listOf(new arrow.Bool())),
  of('list<utf8>', listOf(utf8)),
  of('list<utf8, long>', listOf(utf8), { isLong: true }),
  of('list<null>', listOf(new arrow.Null())),
  of('list<int32 not null>', listOf(int32, false)),
  of('large_list<int64>', largeListOf(new arrow.Int64())),
  of('large_list<utf8>', largeListOf(utf8)),
  of('list<list<int32>>', listOf(listOf(int32))),
  of('list<large_list<list<utf8>>>', listOf(largeListOf(listOf(utf8)))),
  of('list<fixed_size_list<float32>[4]>', listOf(fixedListOf(4, float32))),
  of('list<fixed_size_list<float32>[80]>', listOf(fixedListOf(80, float32))),
  of('list<struct>', listOf(person)),
  of('large_list<struct>', largeListOf(person)),
  of('struct', person),
  { name: 'struct of no fields, not null', field: field('c', structOf(), false) },
  of('struct of no fields', structOf()),
  of(
    'struct<struct<struct>>',
    structOf(field('a', structOf(field('b', structOf(field('c', int32), field('d', utf8)))))),
  ),
  of('struct<list<int32>>', structOf(field('items', listOf(int32)), field('n', new arrow.Int64(), false))),
  of(
    'struct<bool, date, decimal, dict>',
    structOf(
      field('a', new arrow.Bool()),
      field('b', new arrow.DateDay()),
      field('c', new arrow.Decimal(2, 9, 128)),
      field('d', dictionaryOf(utf8)),
    ),
  ),
  {
    name: 'packed struct',
    field: field('c', structOf(field('x', int32, false), field('y', new arrow.Float64(), false)), false, packed),
  },
  of('map<utf8, int32>', mapOf(utf8, int32)),
  of('map<int64, utf8>', mapOf(new arrow.Int64(), utf8)),
  of('map<utf8, list<struct>>', mapOf(utf8, listOf(person))),
  of('list<map<utf8, int32>>', listOf(mapOf(utf8, int32))),
  of('dictionary<int8, utf8>', dictionaryOf(utf8, new arrow.Int8())),
  of('dictionary<uint16, utf8>', dictionaryOf(utf8, new arrow.Uint16())),
  of('dictionary<int32, utf8>', dictionaryOf(utf8)),
  of('dictionary<int64, utf8>', dictionaryOf(utf8, new arrow.Int64())),
  of('dictionary<int32, large_utf8>', dictionaryOf(new arrow.LargeUtf8())),
  of('dictionary<int32, binary>', dictionaryOf(new arrow.Binary())),
  of('dictionary<int32, int64>', dictionaryOf(new arrow.Int64())),
  of('dictionary<int32, float64>', dictionaryOf(new arrow.Float64())),
  of('list<dictionary<int32, utf8>>', listOf(dictionaryOf(utf8))),
  of(
    'struct<list<struct<list<utf8>>>>',
    structOf(field('a', listOf(structOf(field('b', listOf(utf8)), field('n', int32))))),
  ),
];
