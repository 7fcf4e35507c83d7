/** Everything that is public. */

export { makeArrowTable, VectorColumnOptions, type MakeArrowTableOptions } from './arrow';
export type { ArrowTableLike, FieldLike, RecordBatchLike, SchemaLike } from './arrow/foreign';
export type { Row } from './arrow/cells';
export type { DataPart } from './arrow/source';
export { connect, Connection } from './connection';
export { ERROR_CODES, LanceError, type ErrorCode, type ErrorDetails } from './errors';
export { BatchStream, Query, QueryBase, TakeQuery, type ResultRow } from './query';
export type { CleanupOptions, CleanupPreview, KeepReason } from './retention';
export { Table } from './table';
export { Tags, type TagContents } from './tags';
export type { NewColumns } from './columns';
export type {
  AddColumnsSql,
  AddDataOptions,
  AddResult,
  ColumnAlteration,
  ColumnsResult,
  ConnectionOptions,
  CreateTableOptions,
  DeleteResult,
  ExportedFile,
  FieldMetadataUpdate,
  ImportedFile,
  ImportedFiles,
  ListTablesOptions,
  ListTablesResponse,
  OpenTableOptions,
  QueryExecutionOptions,
  TableData,
  TableNamesOptions,
  ToArrayOptions,
  Version,
} from './types';
