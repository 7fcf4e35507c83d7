/** The entry for Node: the same names. The engine reads its wasm file with `fs` where the module is a file. */

export * from './index';
