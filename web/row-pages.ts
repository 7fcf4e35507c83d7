// Row pages: rows of one query, fetched in pages while somebody scrolls, the pages seen last kept.

/** Fetches rows `offset .. offset + limit`. */
export type FetchPage<P> = (offset: number, limit: number) => Promise<P>;

export interface RowPagesOptions {
  /** Rows of a page. Default: 200. */
  readonly pageRows?: number;
  /** Pages that are kept. Default: 32. */
  readonly keptPages?: number;
  /** Fetches that run at once. Default: 2. */
  readonly parallelFetches?: number;
}

/**
 * A cache of pages. Only what was wanted last is fetched: pages that were scrolled past before their turn came are never asked for.
 */
export class RowPages<P> {
  readonly pageRows: number;
  readonly #fetch: FetchPage<P>;
  readonly #keptPages: number;
  readonly #parallelFetches: number;
  /** In the order of their last use, oldest first. */
  readonly #pages = new Map<number, P>();
  readonly #running = new Set<number>();
  #wanted: number[] = [];
  #isClosed = false;
  /** A page has come. */
  onpage: () => void = () => {};
  /** A fetch failed; the page is asked for again when it is wanted again. */
  onerror: (error: unknown) => void = () => {};

  constructor(fetch: FetchPage<P>, options: RowPagesOptions = {}) {
    this.#fetch = fetch;
    this.pageRows = options.pageRows ?? 200;
    this.#keptPages = options.keptPages ?? 32;
    this.#parallelFetches = options.parallelFetches ?? 2;
  }

  /** The page that holds `row` and the row's place in it, when it is here. */
  at(row: number): { readonly page: P; readonly index: number } | undefined {
    const number = Math.floor(row / this.pageRows);
    const page = this.#pages.get(number);
    if (page === undefined) return undefined;
    this.#pages.delete(number);
    this.#pages.set(number, page);
    return { page, index: row - number * this.pageRows };
  }

  /** Rows `first .. end` are on the screen. */
  want(first: number, end: number): void {
    this.#wanted = [];
    for (let page = Math.floor(first / this.pageRows); page * this.pageRows < end; page++) {
      if (!this.#pages.has(page)) this.#wanted.push(page);
    }
    this.#pump();
  }

  /** Pages that are still on their way are dropped when they come. */
  close(): void {
    this.#isClosed = true;
    this.#wanted = [];
    this.#pages.clear();
  }

  #pump(): void {
    for (const page of this.#wanted) {
      if (this.#running.size >= this.#parallelFetches) return;
      if (!this.#running.has(page)) void this.#run(page);
    }
  }

  async #run(page: number): Promise<void> {
    this.#running.add(page);
    try {
      const rows = await this.#fetch(page * this.pageRows, this.pageRows);
      if (this.#isClosed) return;
      this.#pages.set(page, rows);
      for (const oldest of this.#pages.keys()) {
        if (this.#pages.size <= this.#keptPages) break;
        this.#pages.delete(oldest);
      }
    } catch (error) {
      if (!this.#isClosed) this.onerror(error);
      return;
    } finally {
      this.#running.delete(page);
      this.#wanted = this.#wanted.filter((wanted) => wanted !== page);
      if (!this.#isClosed) this.#pump();
    }
    this.onpage();
  }
}
