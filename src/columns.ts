/** Changes of a table's columns: what callers give, checked and put into the engine's words. */

import { isSchemaLike, toOurSchema, type FieldLike, type SchemaLike } from './arrow/foreign';
import { encodeSchema } from './arrow/ipc';
import { checkList, checkText, invalid, notSupported } from './checks';
import type { Engine, TableHandle, WireAlteration, WireComputedColumn, WireFieldMetadata } from './engine/port';
import type { AddColumnsSql, ColumnAlteration, FieldMetadataUpdate } from './types';

const ADD_COLUMNS =
  'Invalid input type for addColumns: expected [{ name, valueSql }], an Arrow field, an array of fields or a schema';

/** What `addColumns` takes. */
export type NewColumns = readonly AddColumnsSql[] | FieldLike | readonly FieldLike[] | SchemaLike;

export function addColumns(engine: Engine, table: TableHandle, columns: NewColumns): Promise<number> {
  const fields = fieldsOf(columns);
  if (fields !== undefined) return engine.addNullColumns(table, encodeSchema(toOurSchema({ fields })));
  if (!Array.isArray(columns)) {
    const isComputed = typeof columns === 'object' && columns !== null && 'computed' in columns;
    throw isComputed ? notSupported('addColumns of computed columns') : invalid(ADD_COLUMNS);
  }
  return engine.addComputedColumns(table, columns.map(computedColumn));
}

export function alterColumns(engine: Engine, table: TableHandle, alterations: unknown): Promise<number> {
  return engine.alterColumns(table, checkList('columnAlterations', alterations).map(alteration));
}

export function dropColumns(engine: Engine, table: TableHandle, names: unknown): Promise<number> {
  const paths = checkList('columnNames', names).map((name) => checkText('a column name', name));
  return engine.dropColumns(table, paths);
}

export function updateFieldMetadata(engine: Engine, table: TableHandle, updates: unknown): Promise<number> {
  return engine.updateFieldMetadata(table, checkList('updates', updates).map(metadataUpdate));
}

/** The fields of a schema, of a list of fields or of one; an empty list is one of expressions, which changes as little. */
function fieldsOf(columns: unknown): readonly FieldLike[] | undefined {
  if (isSchemaLike(columns)) return columns.fields;
  const fields: readonly unknown[] = Array.isArray(columns) ? columns : [columns];
  const isFields = fields.length > 0 && isSchemaLike({ fields });
  return isFields ? (fields as readonly FieldLike[]) : undefined;
}

function computedColumn(value: unknown): WireComputedColumn {
  const { name, valueSql } = checkObject('a column', value) as Partial<AddColumnsSql>;
  if (valueSql === undefined) throw invalid(`Missing field \`valueSql\` of column "${String(name)}"`);
  return {
    name: checkText('the name of a new column', name),
    valueSql: checkText(`valueSql of column "${String(name)}"`, valueSql),
  };
}

function alteration(value: unknown): WireAlteration {
  const { path, rename, dataType, nullable } = checkObject('an alteration', value) as Partial<ColumnAlteration>;
  if (nullable !== undefined && nullable !== null && typeof nullable !== 'boolean') {
    throw invalid(`nullable must be a boolean, found ${typeof nullable}`);
  }
  return {
    path: checkText('path', path),
    ...(given(rename) && { rename: checkText('rename', rename) }),
    ...(given(nullable) && { nullable }),
    ...(given(dataType) && typeOf(dataType)),
  };
}

function typeOf(dataType: unknown): { dataType: string } | { dataTypeIpc: Uint8Array } {
  if (typeof dataType === 'string') return { dataType };
  const schema = { fields: [{ name: 'type', type: dataType, nullable: true }] };
  if (!isSchemaLike(schema)) throw invalid('dataType must be a type of apache-arrow or its name');
  return { dataTypeIpc: encodeSchema(toOurSchema(schema)) };
}

function metadataUpdate(value: unknown): WireFieldMetadata {
  const { path, metadata, replace } = checkObject('an update', value) as Partial<FieldMetadataUpdate>;
  const entries = Object.entries(checkObject('metadata', metadata));
  const texts = entries.map(([key, text]) => [key, given(text) ? checkText(`metadata.${key}`, text) : null]);
  return {
    path: checkText('path', path),
    metadata: Object.fromEntries(texts) as Record<string, string | null>,
    replace: replace === true,
  };
}

function given<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

function checkObject(name: string, value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw invalid(`${name} must be an object, found ${value === null ? 'null' : typeof value}`);
}
