// Writes the golden tables of `tests/golden_tables.rs`: real LanceDB 0.39 tables, of which only the metadata is kept.
// Run in a folder with `@lancedb/lancedb` 0.39.0 and `apache-arrow`: node wasm/tests/golden/lancedb-0.39.0/tables.mjs
import { createRequire } from 'node:module';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// LanceDB tells fields by their class, which must be the one of the CommonJS build that it loads itself.
const require = createRequire(import.meta.url);
const { connect, Index } = require('@lancedb/lancedb');
const arrow = require('apache-arrow');

const target = join(import.meta.dirname, 'tables');
const work = mkdtempSync(join(tmpdir(), 'golden-'));
const db = await connect(work);

const field = (name, type, nullable = true, metadata = undefined) =>
  new arrow.Field(name, type, nullable, metadata && new Map(Object.entries(metadata)));
const rows = (from, to) => Array.from({ length: to - from }, (_, i) => ({ id: from + i, s: `s${from + i}` }));
const plain = new arrow.Schema([field('id', new arrow.Int32(), false), field('s', new arrow.Utf8())]);

// The smallest: one version, no fragment.
await db.createEmptyTable('empty', plain);

// Every type that apache-arrow can declare.
const item = (type) => field('item', type);
const struct = (...members) => new arrow.Struct(members);
const types = {
  n: new arrow.Null(),
  b: new arrow.Bool(),
  i8: new arrow.Int8(),
  u64: new arrow.Uint64(),
  f16: new arrow.Float16(),
  f64: new arrow.Float64(),
  bin: new arrow.Binary(),
  d32: new arrow.DateDay(),
  d64: new arrow.DateMillisecond(),
  t32: new arrow.TimeSecond(),
  t64: new arrow.TimeNanosecond(),
  ts: new arrow.TimestampMicrosecond(),
  tz: new arrow.TimestampMillisecond('Europe/Paris'),
  dur: new arrow.DurationMillisecond(),
  dec: new arrow.Decimal(2, 10, 128),
  fsb: new arrow.FixedSizeBinary(16),
  vec: new arrow.FixedSizeList(4, item(new arrow.Float32())),
  fsl2: new arrow.FixedSizeList(3, item(new arrow.FixedSizeList(2, item(new arrow.Int8())))),
  fsls: new arrow.FixedSizeList(2, item(struct(field('a', new arrow.Int32())))),
  dict: new arrow.Dictionary(new arrow.Utf8(), new arrow.Int16()),
  st: struct(field('a', new arrow.Int32()), field('b', struct(field('c', new arrow.Utf8())))),
  l: new arrow.List(item(new arrow.Int32())),
  ll: new arrow.List(item(new arrow.List(item(new arrow.Int32())))),
  lst: new arrow.List(item(struct(field('a', new arrow.Int32())))),
  m: new arrow.Map_(
    field('entries', struct(field('key', new arrow.Utf8(), false), field('value', new arrow.Int64())), false),
    false,
  ),
};
const typed = Object.entries(types).map(([name, type]) => field(name, type, true, name === 'b' ? { note: 'yes' } : undefined));
await db.createEmptyTable('types', new arrow.Schema(typed, new Map([['owner', 'golden']])));

// Every operation of the API in turn; both forms of deletion files.
const table = await db.createTable('operations', rows(0, 20), { schema: plain });
await table.add(rows(20, 40));
await table.delete('id = 3 OR id = 25');
await table.delete('id >= 0 AND id < 20');
await table.delete('id = 1000');
await table.update({ where: 'id = 30', values: { s: 'new' } });
await table.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows(39, 42));
await table.addColumns([{ name: 'twice', valueSql: 'id * 2' }]);
await table.addColumns([field('later', new arrow.Utf8())]);
await table.alterColumns([{ path: 's', rename: 'text' }]);
await table.alterColumns([{ path: 'twice', dataType: 'int64' }]);
await table.createIndex('id', { config: Index.btree() });
await table.dropColumns(['later']);
await table.updateFieldMetadata([{ path: 'text', metadata: { unit: 'none' } }]).catch((error) => console.warn(String(error)));
await table.optimize();
await table.dropIndex('id_idx');
await table.checkout(3);
await table.restore();
await table.add(rows(50, 52).map((row) => row), { mode: 'overwrite' });

// Deletion files: a short array, a long one that ZSTD shrinks, a bitmap, a bitmap of runs.
const many = await db.createTable('deletions', rows(0, 20000), { schema: plain });
await many.delete('id % 1000 = 7');
await many.delete('id >= 4000 AND id < 8000');
await many.delete('id % 3 = 0');
await many.delete('id < 19990 AND id % 3 <> 0 AND id > 9000');

// A primary key and a MemWAL entry.
const keyed = await db.createTable('keyed', rows(0, 4), { schema: plain });
await keyed.setUnenforcedPrimaryKey('id');
await keyed
  .setLsmWriteSpec({ specType: 'bucket', column: 'id', numBuckets: 4 })
  .catch((error) => console.warn(String(error)));

// Old formats, old names, stable row ids.
for (const version of ['2.0', '2.1'])
  await db.createTable(`format_${version.replace('.', '_')}`, rows(0, 4), {
    schema: new arrow.Schema([...plain.fields, field('st', types.st), field('l', types.l)]),
    storageOptions: { new_table_data_storage_version: version },
  });
const stable = await db.createTable('stable_ids', rows(0, 6), {
  schema: plain,
  storageOptions: { new_table_enable_stable_row_ids: 'true' },
});
await stable.delete('id = 2');
await stable.update({ where: 'id = 4', values: { s: 'new' } });
await db.createTable('names_v1', rows(0, 2), {
  schema: plain,
  storageOptions: { new_table_enable_v2_manifest_paths: 'false' },
});

// A branch: a manifest with a base path.
const branches = await stable.branches();
await branches.create('dev').catch((error) => console.warn(String(error)));

rmSync(target, { recursive: true, force: true });
for (const name of await db.tableNames())
  for (const folder of ['_versions', '_transactions', '_deletions', 'tree'])
    if (existsSync(join(work, `${name}.lance`, folder)))
      cpSync(join(work, `${name}.lance`, folder), join(target, name, folder), {
        recursive: true,
        filter: (source) => !/\.(lance|idx)$/.test(source) && !/\/data$/.test(source),
      });
rmSync(work, { recursive: true });
