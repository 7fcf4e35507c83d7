// Steps: the commands the npm scripts run, each with a name, a time and an outcome.
//
// Everything here is Node's own library: set-up calls it before node_modules exists.

import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync, realpathSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository, without a trailing separator. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

const isWindows = process.platform === 'win32';
const tailLines = 40;

/** A failure whose message is all a person needs: printed without a stack. */
export class StepError extends Error {}

/**
 * Run a command to its end.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, isShown?: boolean, timeoutMs?: number }} [options]
 *   `isShown`: the command writes to this terminal; otherwise its output is kept and returned.
 * @returns {Promise<{ code: number, output: string }>} `code` is 127 when it could not be started, 124 after the timeout.
 */
export function run(command, args, { cwd = root, env = process.env, isShown = false, timeoutMs } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env,
      shell: isWindows && !/\.exe$/i.test(command),
      stdio: isShown ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    });
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    let isLate = false;
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => ((isLate = true), child.kill()), timeoutMs);
    // An interrupted npm script must not leave its commands running.
    const stop = () => child.kill();
    process.once('exit', stop);
    const end = (code, extra = '') => {
      clearTimeout(timer);
      process.off('exit', stop);
      resolve({ code, output: Buffer.concat(chunks).toString() + extra });
    };
    child.once('error', (error) => end(127, `${command}: ${error.message}\n`));
    child.once('close', (code, signal) => {
      if (isLate) end(124, `${command}: no answer within ${timeoutMs / 1000} s\n`);
      else end(code ?? 1, signal ? `${command}: ended by ${signal}\n` : '');
    });
  });
}

/**
 * What a quick command prints, or undefined when it is not there or fails.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function ask(command, args, env = process.env) {
  const { status, stdout } = spawnSync(command, args, {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 ? stdout.trim() : undefined;
}

/**
 * Where a program is on a search path.
 *
 * @param {string} name
 * @param {string | undefined} [path]
 * @returns {string | undefined}
 */
export function which(name, path = process.env.PATH) {
  for (const folder of (path ?? '').split(delimiter)) {
    if (folder === '') continue;
    const file = join(folder, isWindows ? `${name}.exe` : name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // not in this folder
    }
  }
  return undefined;
}

/**
 * The script behind a command of an npm package, to be run with this very Node: no shell, no PATH.
 *
 * @param {string} packageName
 * @param {string} [binName]
 * @returns {string}
 */
export function packageBin(packageName, binName = packageName.replace(/^@.*\//, '')) {
  const folder = join(root, 'node_modules', packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : bin[binName]);
}

/** `3.2 s`, `4 m 07 s`. */
export function formatTime(ms) {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`;
}

/** The last lines of a command's output, indented. */
export function tail(output, lines = tailLines) {
  const all = output.trimEnd().split(/\r?\n/);
  const cut = all.length > lines ? [`... (${all.length - lines} lines before)`] : [];
  return [...cut, ...all.slice(-lines)].map((line) => `    ${line}`).join('\n');
}

/** Run `main` as the body of a script: a StepError is a message and exit code 1, anything else keeps its stack. */
export async function script(main) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}

/** Is this module the one Node was started with? */
export function isMain(url) {
  return process.argv[1] !== undefined && fileURLToPath(url) === realpathSync(process.argv[1]);
}

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {() => Promise<{ code: number, output: string }>} run
 * @property {boolean} [isNeeded] what comes after it makes no sense when it fails
 */

/**
 * Run steps one after the other, all of them though one may fail, and end with a table.
 *
 * @param {Step[]} steps
 * @returns {Promise<number>} an exit code
 */
export async function runSteps(steps) {
  const rows = [];
  const started = Date.now();
  let isStopped = false;
  for (const { name, run: body, isNeeded } of steps) {
    if (isStopped) {
      rows.push({ name, outcome: 'not run', time: '' });
      continue;
    }
    console.log(`\n== ${name}`);
    const stepStarted = Date.now();
    let result;
    try {
      result = await body();
    } catch (error) {
      if (!(error instanceof StepError)) throw error;
      result = { code: 1, output: error.message };
    }
    const time = formatTime(Date.now() - stepStarted);
    const isOk = result.code === 0;
    if (!isOk && result.output !== '') console.log(tail(result.output, 200));
    console.log(`== ${name}: ${isOk ? 'ok' : 'FAILED'} (${time})`);
    rows.push({ name, outcome: isOk ? 'ok' : 'FAILED', time });
    isStopped = !isOk && isNeeded === true;
  }
  const width = Math.max(...rows.map(({ name }) => name.length), 5) + 2;
  console.log('');
  for (const { name, outcome, time } of rows) console.log(name.padEnd(width) + outcome.padEnd(9) + time.padStart(10));
  const hasFailed = rows.some(({ outcome }) => outcome !== 'ok');
  const total = formatTime(Date.now() - started).padStart(10);
  console.log('total'.padEnd(width) + (hasFailed ? 'FAILED' : 'ok').padEnd(9) + total);
  return hasFailed ? 1 : 0;
}
