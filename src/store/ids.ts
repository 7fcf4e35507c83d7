/** Ids that are never given twice. */

/** 128 random bits in hexadecimal. `crypto.randomUUID` is missing where a page was not loaded securely. */
export function newId(): string {
  let id = '';
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) id += byte.toString(16).padStart(2, '0');
  return id;
}
