// Set-up: everything a build or a test needs that is not there yet. Idempotent; silent when nothing is missing.
//
// 1. Node, and node_modules as package-lock.json says.
// 2. Rust with rustfmt and clippy.
// 3. The wasm32 standard library: from rustup, or where rustup cannot fetch it, built from Debian's library sources.
// 4. wasm-pack, and wasm-bindgen of exactly the version that wasm/Cargo.lock has; into .tools when PATH has no fitting one.
// 5. A Chromium.
//
// Node's own library only: this runs before node_modules exists.

import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

import { findChromium } from './chromium.mjs';
import { lock } from './lock.mjs';
import { ask, formatTime, isMain, packageBin, root, run, script, StepError, tail, which } from './step.mjs';

const minNode = [20, 19, 0];
const minRust = '1.85.0';
const minWasmPack = '0.13.0';
/** What is installed where PATH has no wasm-pack. */
const wasmPackVersion = '0.15.1';
/** Installed by the first run of a fuzzer only. */
const cargoFuzzVersion = '0.13.1';
/** Used until wasm/Cargo.lock names one. */
const defaultBindgenVersion = '0.2.130';

const target = 'wasm32-unknown-unknown';
/** The rustup toolchain that stands for Debian's rustc and the library built for it. */
const linkedToolchain = 'wasm-std';
const debianPackages = ['rustc-web', 'cargo-web', 'rust-web-src', 'rust-web-llvm', 'lld-19'];
const debianLibrary = `/usr/lib/rustlib/${target}/lib`;
const debianLinkers = ['wasm-ld-19', 'wasm-ld', 'wasm-ld-20', 'wasm-ld-21'];

const toolsFolder = join(root, '.tools');

// ---- what the other scripts use -------------------------------------------------------------------------------------

/**
 * Install what is missing.
 *
 * @param {{ browser?: boolean }} [options] `browser: false` leaves Chromium out. Default: true.
 * @returns {Promise<void>} Rejects with a StepError that says what to install by hand.
 */
export async function ensureSetup({ browser = true } = {}) {
  checkNode();
  if (missing(browser).length === 0) return;
  mkdirSync(toolsFolder, { recursive: true });
  const unlock = await lock(join(toolsFolder, 'setup.lock'), (owner) =>
    console.log(`setup: waiting for the set-up of process ${owner}`),
  );
  try {
    // Another run may have installed it while this one waited.
    const steps = missing(browser);
    if (steps.length > 0) console.log(`setup: missing here: ${steps.join(', ')}`);
    await install(new Set(steps));
  } finally {
    unlock();
  }
}

/**
 * Install cargo-fuzz where it is missing. Its fuzzers' runtime is C++.
 *
 * @returns {Promise<void>} Rejects with a StepError that says what to install by hand.
 */
export async function ensureCargoFuzz() {
  const isThere = () => ask('cargo-fuzz', ['--version'], toolEnv()) !== undefined;
  if (!['c++', 'g++', 'clang++'].some((name) => which(name) !== undefined)) {
    throw new StepError('setup: fuzzing needs a C++ compiler, as c++ on PATH');
  }
  if (isThere()) return;
  mkdirSync(toolsFolder, { recursive: true });
  const unlock = await lock(join(toolsFolder, 'setup.lock'), (owner) =>
    console.log(`setup: waiting for the set-up of process ${owner}`),
  );
  try {
    if (!isThere()) await installTools([{ name: 'cargo-fuzz', bin: 'cargo-fuzz', version: cargoFuzzVersion }]);
  } finally {
    unlock();
  }
}

/**
 * The environment of every command: PATH with .tools/bin and cargo's own folder.
 *
 * @returns {NodeJS.ProcessEnv}
 */
export function toolEnv() {
  const folders = [join(toolsFolder, 'bin'), process.env.PATH ?? ''];
  if (which('cargo') === undefined) folders.splice(1, 0, join(cargoHome(), 'bin'));
  return { ...process.env, PATH: folders.join(delimiter) };
}

/**
 * The environment of cargo and wasm-pack when they compile for wasm32: toolEnv() plus the toolchain and the linker.
 *
 * @returns {NodeJS.ProcessEnv}
 */
export function wasmEnv() {
  return { ...toolEnv(), ...(wasmToolchain() ?? {}) };
}

/** The wasm-bindgen that wasm/Cargo.lock has: the command line tool must be the same. */
export function bindgenVersion() {
  const file = join(root, 'wasm', 'Cargo.lock');
  if (!existsSync(file)) return defaultBindgenVersion;
  return (
    /^name = "wasm-bindgen"\r?\nversion = "([^"]+)"/m.exec(readFileSync(file, 'utf8'))?.[1] ?? defaultBindgenVersion
  );
}

// ---- what is missing ------------------------------------------------------------------------------------------------

function checkNode() {
  if (!isAtLeast(process.versions.node, minNode.join('.'))) {
    throw new StepError(
      `setup: Node ${minNode.join('.')} or newer is needed, this is ${process.versions.node}: https://nodejs.org`,
    );
  }
}

function missing(browser) {
  const env = toolEnv();
  return [
    !nodeModulesFit() && 'npm packages',
    rustProblem(env) !== undefined && 'rust',
    wasmToolchain() === undefined && 'wasm32 library',
    !wasmPackFits(env) && 'wasm-pack',
    !bindgenFits(env) && 'wasm-bindgen',
    browser && findChromium() === undefined && 'chromium',
  ].filter((step) => step !== false);
}

/**
 * Are the installed packages those of package-lock.json? By content and not by age: a fresh checkout makes the lock file
 * newer than a node_modules that fits.
 */
function nodeModulesFit() {
  const read = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  let installed;
  try {
    installed = read(join(root, 'node_modules', '.package-lock.json'));
  } catch {
    return false;
  }
  return Object.entries(read(join(root, 'package-lock.json'))).every(([path, { version, optional, peer, link }]) => {
    if (path === '' || link) return true;
    const there = installed[path];
    return there === undefined ? Boolean(optional || peer) : there.version === version;
  });
}

/** Why the Rust that is here does not do, or undefined. */
function rustProblem(env) {
  if (which('cargo', env.PATH) === undefined) return 'no cargo';
  const version = /^rustc (\S+)/.exec(ask('rustc', ['--version'], env) ?? '')?.[1];
  if (version === undefined) return 'no toolchain';
  if (!isAtLeast(version, neededRust())) return `rustc ${version} is older than ${neededRust()}`;
  if (ask('cargo', ['fmt', '--version'], env) === undefined) return 'no rustfmt';
  if (ask('cargo', ['clippy', '--version'], env) === undefined) return 'no clippy';
  return undefined;
}

function neededRust() {
  const file = join(root, 'wasm', 'Cargo.toml');
  const said = existsSync(file) ? /^rust-version\s*=\s*"([^"]+)"/m.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
  return said ?? minRust;
}

/** The variables that make cargo compile for wasm32 here, or undefined when nothing can. */
function wasmToolchain() {
  const env = toolEnv();
  const folder = ask('rustc', ['--print', 'target-libdir', '--target', target], env);
  if (folder !== undefined && hasStd(folder)) {
    // rustup brings its own linker; a distribution's rustc may not.
    const linker = folder.startsWith('/usr/') ? findLinker() : undefined;
    return linker === undefined ? {} : linkerVariable(linker);
  }
  const toolchains = ask('rustup', ['toolchain', 'list'], env)?.split(/\r?\n/) ?? [];
  const linker = findLinker();
  if (!toolchains.some((line) => line.split(' ')[0] === linkedToolchain) || linker === undefined) return undefined;
  if (!hasStd(debianLibrary) || !debianStdFits()) return undefined;
  return { RUSTUP_TOOLCHAIN: linkedToolchain, ...linkerVariable(linker) };
}

const linkerVariable = (linker) => ({ CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: linker });
const findLinker = () => debianLinkers.find((name) => which(name) !== undefined);
const hasStd = (folder) => existsSync(folder) && readdirSync(folder).some((name) => /^libstd-.*\.rlib$/.test(name));

/** A library serves only the compiler that built it: after an upgrade of Debian's rustc it is built again. */
const debianStdStamp = join(debianLibrary, 'built-by');
const debianStdFits = () =>
  existsSync(debianStdStamp) && readFileSync(debianStdStamp, 'utf8') === ask('/usr/bin/rustc', ['-vV']);

function wasmPackFits(env) {
  const version = / (\S+)$/.exec(ask('wasm-pack', ['--version'], env) ?? '')?.[1];
  return version !== undefined && isAtLeast(version, minWasmPack);
}

const bindgenFits = (env) => ask('wasm-bindgen', ['--version'], env)?.split(' ')[1] === bindgenVersion();

function isAtLeast(version, least) {
  const numbers = (text) => text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0);
  const [a, b] = [numbers(version), numbers(least)];
  for (let i = 0; i < 3; i++) if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) > (b[i] ?? 0);
  return true;
}

const cargoHome = () => process.env.CARGO_HOME ?? join(homedir(), '.cargo');

// ---- installing it --------------------------------------------------------------------------------------------------

/** Three chains at once: they wait for the network, for rustc and for dpkg in turn. */
async function install(steps) {
  const packages = steps.has('npm packages') ? installNodeModules() : Promise.resolve();
  const chains = [packages, installRustSide(steps), packages.then(() => installBrowser(steps))];
  const told = new Set();
  const tell = (error) => {
    // At once: another chain may go on for minutes.
    if (error instanceof StepError && !told.has(error)) console.error(error.message);
    told.add(error);
  };
  await Promise.all(chains.map((chain) => chain.catch(tell)));
  for (const error of told) if (!(error instanceof StepError)) throw error;
  if (told.size > 0) throw new StepError('setup: not complete, see above; what is there is kept');
}

async function installNodeModules() {
  const folder = join(root, 'node_modules');
  if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink()) {
    // npm ci would empty the folder of somebody else's checkout.
    throw new StepError(
      `setup: node_modules is a link to ${realpathSync(folder)}, which does not fit package-lock.json: run npm ci there`,
    );
  }
  await step('npm ci', 'npm', ['ci', '--no-audit', '--no-fund']);
}

async function installRustSide(steps) {
  if (steps.has('rust')) await installRust();
  if (steps.has('wasm32 library')) await installWasmLibrary();
  const tools = [
    steps.has('wasm-bindgen') && { name: 'wasm-bindgen-cli', bin: 'wasm-bindgen', version: bindgenVersion() },
    steps.has('wasm-pack') && { name: 'wasm-pack', bin: 'wasm-pack', version: wasmPackVersion },
  ].filter((tool) => tool !== false);
  await installTools(tools);
}

/** Builds command line tools with cargo, into .tools. */
async function installTools(tools) {
  // One folder for both: they share most of what they depend on.
  const targetFolder = join(toolsFolder, 'build');
  // The tools are built once and run for seconds: compiling them fast is worth more than their speed.
  const env = { ...toolEnv(), CARGO_TARGET_DIR: targetFolder, CARGO_PROFILE_RELEASE_OPT_LEVEL: '1' };
  env.CARGO_PROFILE_RELEASE_LTO = 'off';
  // Of the caller's build, not of these.
  for (const name of ['CARGO_BUILD_TARGET', 'RUSTFLAGS']) delete env[name];
  try {
    for (const tool of tools) await cargoInstall(tool, env);
  } finally {
    if (tools.length > 0) rmSync(targetFolder, { recursive: true, force: true });
  }
}

async function installRust() {
  const env = toolEnv();
  const problem = rustProblem(env);
  if (which('rustup', env.PATH) === undefined) {
    throw new StepError(
      `setup: ${problem}: install Rust ${neededRust()} or newer with rustfmt and clippy, by https://rustup.rs`,
    );
  }
  if (problem === 'no rustfmt' || problem === 'no clippy') {
    await step('rustup component add', 'rustup', ['component', 'add', 'rustfmt', 'clippy'], { env });
  } else {
    const args = ['toolchain', 'install', 'stable', '--profile', 'minimal', '-c', 'rustfmt', '-c', 'clippy'];
    await step('rustup toolchain install stable', 'rustup', args, { env });
  }
  const left = rustProblem(env);
  if (left !== undefined) throw new StepError(`setup: ${left}, although rustup has just run: see \`rustup show\``);
}

async function installWasmLibrary() {
  const env = toolEnv();
  const byHand =
    `setup: the Rust library for ${target} is missing. With a network: rustup target add ${target}. ` +
    `On Debian 12 or newer, with rustup: run this as root.`;
  if (which('rustup', env.PATH) === undefined) throw new StepError(byHand);
  const isThere = ask('/usr/bin/rustc', ['--version']) !== undefined && hasStd(debianLibrary) && debianStdFits();
  if (!isThere) {
    const started = Date.now();
    const quick = { ...env, RUSTUP_MAX_RETRIES: '1' };
    const { code } = await run('rustup', ['target', 'add', target], { env: quick, timeoutMs: 120_000 });
    say(`rustup target add ${target}`, started, code === 0 ? 'ok' : 'cannot be fetched here');
    if (code === 0) return;
    if (!isRoot() || which('apt-get') === undefined) throw new StepError(byHand);
    await aptInstall(debianPackages);
    await buildDebianLibrary();
  }
  await step('rustup toolchain link', 'rustup', ['toolchain', 'link', linkedToolchain, '/usr'], { env });
}

/** Build the standard library for wasm32 from Debian's sources, and put it where Debian's rustc looks for it. */
async function buildDebianLibrary() {
  const folder = mkdtempSync(join(tmpdir(), 'wasm-std-'));
  try {
    const name = 'only_std';
    mkdirSync(join(folder, 'src'));
    writeFileSync(join(folder, 'src', 'lib.rs'), '');
    writeFileSync(join(folder, 'Cargo.toml'), `[package]\nname = "${name}"\nversion = "0.0.0"\nedition = "2021"\n`);
    const env = { ...toolEnv(), RUSTC: '/usr/bin/rustc', RUSTC_BOOTSTRAP: '1', RUSTFLAGS: `-Clinker=${findLinker()}` };
    for (const variable of ['CARGO_TARGET_DIR', 'RUSTUP_TOOLCHAIN', 'RUSTC_WRAPPER']) delete env[variable];
    const args = ['build', '--release', '-Zbuild-std=std,panic_abort', '--target', target];
    await step(`standard library for ${target}`, '/usr/bin/cargo', args, { env, cwd: folder });
    const built = join(folder, 'target', target, 'release', 'deps');
    rmSync(debianLibrary, { recursive: true, force: true });
    mkdirSync(debianLibrary, { recursive: true });
    for (const file of readdirSync(built)) {
      if (file.endsWith('.rlib') && !file.startsWith(`lib${name}`))
        copyFileSync(join(built, file), join(debianLibrary, file));
    }
    // Last: without it the library counts as not there.
    writeFileSync(debianStdStamp, ask('/usr/bin/rustc', ['-vV']) ?? '');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** With the versions its author tested; where the registry lacks one of them, with those that fit. */
async function cargoInstall({ name, bin, version }, env) {
  const args = ['install', '--root', toolsFolder, name, '--version', `=${version}`, '--bin', bin, '--force'];
  const label = `cargo install ${name} ${version}`;
  console.log(`setup: ${label} ...`);
  const started = Date.now();
  let result = await run('cargo', [...args, '--locked'], { env });
  if (result.code !== 0) result = await run('cargo', args, { env });
  if (result.code !== 0) throw failed(label, result.output);
  say(label, started);
}

async function installBrowser(steps) {
  if (!steps.has('chromium')) return;
  const started = Date.now();
  const playwright = packageBin('@playwright/test', 'playwright');
  const { code } = await run(process.execPath, [playwright, 'install', 'chromium'], { timeoutMs: 300_000 });
  const path = code === 0 ? findChromium() : undefined;
  say('playwright install chromium', started, path === undefined ? 'cannot be fetched here' : 'ok');
  const hasApt = which('apt-get') !== undefined && (isRoot() || canSudo());
  if (path === undefined) {
    if (hasApt) await aptInstall(['chromium']);
  } else if (hasApt && ask(path, ['--version']) === undefined) {
    // It is there but does not start: libraries of the system are missing.
    const args = [playwright, 'install-deps', 'chromium'];
    await aptInTurn(() => step('playwright install-deps chromium', process.execPath, args));
  }
  if (findChromium() === undefined) {
    throw new StepError('setup: no browser: install Chromium or Chrome, or set LANCELET_CHROMIUM to the path of one');
  }
}

// ---- running one step -----------------------------------------------------------------------------------------------

async function step(label, command, args, options = {}) {
  console.log(`setup: ${label} ...`);
  const started = Date.now();
  const { code, output } = await run(command, args, options);
  if (code !== 0) throw failed(label, output);
  say(label, started);
}

const say = (label, started, outcome = 'ok') =>
  console.log(`setup: ${label}: ${outcome} (${formatTime(Date.now() - started)})`);
const failed = (label, output) => new StepError(`setup: ${label} failed:\n${tail(output)}`);

const isRoot = () => process.getuid?.() === 0;
const canSudo = () => ask('sudo', ['-n', 'true']) !== undefined;

/** dpkg has one lock: the chains take turns, and wait for others on the machine. */
let aptTurn = Promise.resolve();
let isAptUpdated = false;

function aptInstall(packages) {
  const apt = (args) => {
    const all = ['-o', 'DPkg::Lock::Timeout=600', ...args];
    return isRoot() ? ['apt-get', all] : ['sudo', ['-n', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...all]];
  };
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = async () => {
    if (!isAptUpdated) await step('apt-get update', ...apt(['update']), { env });
    isAptUpdated = true;
    const args = apt(['install', '-y', '--no-install-recommends', ...packages]);
    await step(`apt-get install ${packages.join(' ')}`, ...args, { env });
  };
  return aptInTurn(install);
}

function aptInTurn(install) {
  const turn = aptTurn.then(install);
  aptTurn = turn.catch(() => {});
  return turn;
}

if (isMain(import.meta.url)) await script(() => ensureSetup({ browser: !process.argv.includes('--no-browser') }));
