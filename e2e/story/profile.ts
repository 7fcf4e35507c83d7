// Profiles on disk: Playwright's default contexts keep IndexedDB and OPFS in memory, where nothing can survive.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium, test, type BrowserContext, type Page } from '@playwright/test';

import { launchOptions } from '../browser.ts';

export const SCHEMES = ['opfs', 'indexeddb'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** A new folder that `removeFolder` takes away. */
export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'lancelet-e2e-'));
}

export function removeFolder(folder: string): void {
  // A browser that was killed may still be letting go of its files.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** One browser on a profile of its own, for all tests of a file. */
export class Profile {
  readonly base: string;
  readonly #folder: string;
  readonly #context: BrowserContext;

  private constructor(base: string, folder: string, context: BrowserContext) {
    this.base = base;
    this.#folder = folder;
    this.#context = context;
  }

  static async open(base: string | undefined): Promise<Profile> {
    if (base === undefined) throw new Error('the configuration has no baseURL');
    const folder = newFolder();
    return new Profile(base, folder, await chromium.launchPersistentContext(folder, launchOptions));
  }

  get context(): BrowserContext {
    return this.#context;
  }

  newPage(): Promise<Page> {
    return this.#context.newPage();
  }

  /** A page that has the public API on its window. */
  async newStory(): Promise<Page> {
    const page = await this.newPage();
    await openStory(page, this.base);
    return page;
  }

  async close(): Promise<void> {
    await this.#context.close();
    removeFolder(this.#folder);
  }
}

export async function openStory(page: Page, base: string | undefined): Promise<void> {
  if (base === undefined) throw new Error('the configuration has no baseURL');
  await page.goto(`${base}/e2e/story/index.html`);
  await page.waitForFunction(() => 'lancelet' in window);
}

/** The profile of a test file: one browser, started before its first test. */
export function useProfile(): { readonly current: Profile } {
  let profile: Profile | undefined;
  test.beforeAll(async ({}, { project }) => {
    profile = await Profile.open(project.use.baseURL);
  });
  test.afterAll(async () => {
    await profile?.close();
  });
  return {
    get current() {
      if (profile === undefined) throw new Error('the profile is open while tests run');
      return profile;
    },
  };
}

let stores = 0;

/** A connection that no other test uses. */
export function newUri(scheme: string): string {
  return `${scheme}://story-${(stores += 1)}`;
}
