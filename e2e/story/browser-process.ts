// A browser that a test started itself, so that it knows the process to kill.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { chromium, type Browser, type BrowserContext } from '@playwright/test';

import { args, executablePath } from '../browser.ts';

export interface StartOptions {
  /** A command that runs the browser, such as a tracer with its options. */
  readonly wrapper?: readonly string[];
}

export class BrowserProcess {
  readonly context: BrowserContext;
  readonly #browser: Browser;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, browser: Browser, context: BrowserContext) {
    this.#child = child;
    this.#browser = browser;
    this.context = context;
  }

  /** Starts Chromium on a profile's folder, in a process group of its own. */
  static async start(folder: string, { wrapper = [] }: StartOptions = {}): Promise<BrowserProcess> {
    const own = ['--headless', '--remote-debugging-port=0', `--user-data-dir=${folder}`, '--no-default-browser-check'];
    const quiet = ['--password-store=basic', '--use-mock-keychain', '--disable-dev-shm-usage'];
    const [command = executablePath, ...before] = [...wrapper, executablePath];
    const all = [...before, ...args, ...own, ...quiet, 'about:blank'];
    const child = spawn(command, all, { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    try {
      const browser = await chromium.connectOverCDP(await debuggingUrl(child));
      const [context] = browser.contexts();
      if (context === undefined) throw new Error('the browser has no default context');
      return new BrowserProcess(child, browser, context);
    } catch (error) {
      killGroup(child);
      throw error;
    }
  }

  /** Ends the browser and every process it started as a power cut of the program would: no handler runs, nothing is flushed. */
  async kill(): Promise<void> {
    const isOver = this.#child.exitCode !== null || this.#child.signalCode !== null;
    const exited = isOver ? undefined : once(this.#child, 'exit');
    killGroup(this.#child);
    await exited;
    await this.#browser.close();
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    // It has ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Chromium tells the address on its standard error. */
async function debuggingUrl(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error('the browser has no standard error');
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    const [, url] = /DevTools listening on (ws:\S+)/.exec(line) ?? [];
    if (url !== undefined) {
      child.stderr.resume();
      return url;
    }
    said.push(line);
  }
  throw new Error(`the browser did not start:\n${said.join('\n')}`);
}
