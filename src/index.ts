/** Everything that is public. */

export { makeArrowTable, MakeArrowTableOptions, VectorColumnOptions } from './arrow';
export type { ArrowTableLike, FieldLike, RecordBatchLike, SchemaLike } from './arrow/foreign';
export type { Row } from './arrow/cells';
export { Scannable, type ReaderLike, type ScannableOptions } from './arrow/scannable';
export type { DataPart } from './arrow/source';
export { packBits } from './bits';
export { connect, Connection } from './connection';
export { ERROR_CODES, LanceError, type ErrorCode, type ErrorDetails } from './errors';
export type { LsmBucketStats, LsmGenerationStats, LsmStats, LsmWriteSpec } from './lsm';
export { MergeInsertBuilder } from './merge';
export { BatchStream, Query, QueryBase, TakeQuery, type ResultRow } from './query';
export type { CleanupOptions, CleanupOptions as OptimizeOptions, CleanupPreview, KeepReason } from './retention';
export { Table } from './table';
export { Tags, type TagContents } from './tags';
export type { NewColumns } from './columns';
export type {
  AddColumnsSql,
  AddDataOptions,
  AddResult,
  ColumnAlteration,
  ColumnsResult,
  CompactionStats,
  ConnectionOptions,
  CreateTableOptions,
  DeleteResult,
  UpdateOptions,
  UpdateResult,
  UpdateSql,
  UpdateValues,
  ExportedFile,
  FieldMetadataUpdate,
  FragmentStatistics,
  FragmentSummaryStats,
  ImportedFile,
  ImportedFiles,
  ListTablesOptions,
  ListTablesResponse,
  MergeExecutionOptions,
  MergeResult,
  OpenTableOptions,
  OptimizeStats,
  QueryExecutionOptions,
  RemovalStats,
  RenameTableOptions,
  TableData,
  TableNamesOptions,
  TableStatistics,
  ToArrayOptions,
  Version,
  WriteProgress,
} from './types';
