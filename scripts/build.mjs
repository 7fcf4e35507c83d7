// Build: wasm/pkg from the Rust engine, dist/ from src/, web/dist from web/.
//
//   npm run build                  all three
//   npm run build -- --wasm        one part; --dist, --web: the others
//   npm run build -- --dev         the engine unoptimised, with names: quick to build, large, slow
//
// dist/ holds what npm ships. index.js (browsers) and node.js are bundles that leave `apache-arrow` to the user.
// worker.js is complete in itself, since a worker knows no import map. Both find their neighbours by
// `new URL('./worker.js', import.meta.url)` and `new URL('./lancelet_bg.wasm', import.meta.url)`, which bundlers
// understand and a plain file server serves. In src/ the same expressions name the sources, for Vite and vitest;
// here they are turned into those of dist/.

import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { bindgenVersion, ensureSetup, toolEnv, wasmEnv } from './setup.mjs';
import { ask, formatTime, isMain, packageBin, root, run, script, StepError, tail } from './step.mjs';

const crate = join(root, 'wasm');
const pkg = join(crate, 'pkg');
const stampFile = join(pkg, '.stamp');
const dist = join(root, 'dist');
const wasmName = 'lancelet_bg.wasm';

/** Every current browser, Node and workerd have it. */
export const wasmRustFlags = '-Ctarget-feature=+simd128';

/**
 * Build parts of the project.
 *
 * @param {{ wasm?: boolean, dist?: boolean, web?: boolean, isDev?: boolean }} parts
 */
export async function build({ wasm = false, dist = false, web = false, isDev = false }) {
  if (wasm) await timed('wasm', () => buildWasm({ isDev }));
  if (dist) await timed('dist', buildDist);
  if (web) await timed('web', buildWeb);
}

async function timed(name, part) {
  const started = Date.now();
  const outcome = await part();
  console.log(`build: ${name}: ${outcome} (${formatTime(Date.now() - started)})`);
}

// ---- wasm/pkg -------------------------------------------------------------------------------------------------------

/**
 * Compile the engine, unless wasm/pkg is of these very sources.
 *
 * @param {{ isDev?: boolean, orAnyProfile?: boolean }} [options] `orAnyProfile`: an up-to-date package of the other
 *   profile will do: its types are the same.
 * @returns {Promise<string>} what was done
 */
export async function buildWasm({ isDev = false, orAnyProfile = false } = {}) {
  const profile = isDev ? 'dev' : 'release';
  const stamps = (orAnyProfile ? ['release', 'dev'] : [profile]).map(stampOf);
  const isBuilt = existsSync(join(pkg, wasmName)) && existsSync(stampFile);
  if (isBuilt && stamps.includes(readFileSync(stampFile, 'utf8'))) return 'unchanged';
  // Taken before the build: a source saved while it runs makes the next one build again.
  const stamp = stampOf(profile);
  rmSync(stampFile, { force: true });
  const args = [
    'build',
    crate,
    '--target',
    'web',
    '--mode',
    'no-install',
    '--out-dir',
    'pkg',
    '--out-name',
    'lancelet',
  ];
  const env = { ...wasmEnv(), RUSTFLAGS: wasmRustFlags };
  const { code, output } = await run('wasm-pack', [...args, '--no-pack', '--no-opt', `--${profile}`], { env });
  if (code !== 0) throw new StepError(`build: wasm-pack failed:\n${tail(output, 80)}`);
  writeFileSync(stampFile, stamp);
  return `${profile} build`;
}

function stampOf(profile) {
  const hash = createHash('sha256');
  const add = (name, bytes) => hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  add('flags', `${profile} ${wasmRustFlags}`);
  add('tools', `${ask('rustc', ['--version'], wasmEnv())} wasm-bindgen ${bindgenVersion()}`);
  const sources = readdirSync(join(crate, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const files = [...sources, join(crate, 'Cargo.toml'), join(crate, 'Cargo.lock')].filter((file) => existsSync(file));
  for (const file of files.sort()) add(relative(crate, file), readFileSync(file));
  return hash.digest('hex');
}

// ---- dist -----------------------------------------------------------------------------------------------------------

async function buildDist() {
  if (!existsSync(join(pkg, wasmName))) throw new StepError('build: wasm/pkg is missing: npm run build -- --wasm');
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  const { build: bundle } = await importPackage('esbuild');
  const common = {
    bundle: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    sourcemap: true,
    logLevel: 'silent',
    metafile: true,
    absWorkingDir: root,
    plugins: [distUrls],
  };
  const browserPlugins = [distUrls, withoutFolders];
  const external = ['apache-arrow'];
  const entries = [
    { entryPoints: ['src/index.ts'], outfile: 'dist/index.js', platform: 'browser', external, plugins: browserPlugins },
    { entryPoints: ['src/node.ts'], outfile: 'dist/node.js', platform: 'node', external },
    { entryPoints: ['src/worker/host.ts'], outfile: 'dist/worker.js', platform: 'browser', plugins: browserPlugins },
  ];
  for (const entry of entries) {
    let result;
    try {
      result = await bundle({ ...common, ...entry });
    } catch (error) {
      throw new StepError(`build: ${entry.outfile}: ${error.message}`);
    }
    for (const { text } of result.warnings) console.log(`build: ${entry.outfile}: ${text}`);
    checkBundle(entry.outfile, result.metafile.outputs[entry.outfile]);
  }
  copyFileSync(join(pkg, wasmName), join(dist, wasmName));
  await emitTypes();
  return 'index.js, node.js, worker.js, types';
}

/** The neighbours of a bundle in dist/, by the name that the sources have for them. */
const neighbours = { 'host.ts': './worker.js', [wasmName]: `./${wasmName}` };
const urlExpression = /new URL\(\s*(['"])([^'"]+)\1\s*,\s*import\.meta\.url\s*,?\s*\)/g;

const distUrls = {
  name: 'dist-urls',
  setup(build) {
    build.onLoad({ filter: /[\\/](src|pkg)[\\/].*\.[jt]s$/ }, ({ path }) => {
      if (path.includes('node_modules')) return undefined;
      const contents = readFileSync(path, 'utf8').replace(urlExpression, (whole, quote, url) => {
        const name = url.slice(url.lastIndexOf('/') + 1);
        return name in neighbours ? `new URL('${neighbours[name]}', import.meta.url)` : whole;
      });
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
};

/** Folders are for Node, whose entry has them: a browser's must not name a module of Node, not even to load it lazily. */
const withoutFolders = {
  name: 'without-folders',
  setup(build) {
    const namespace = 'without-folders';
    build.onResolve({ filter: /^(\.\/node-fs|node:url)$/ }, ({ path }) => ({ path, namespace }));
    build.onLoad({ filter: /.*/, namespace }, () => ({
      contents: 'export const openNodeStore = undefined, fileURLToPath = undefined;',
    }));
  },
};

/** What would only break at the user's: a URL of a file that is not shipped, an import that nothing resolves. */
function checkBundle(file, { imports }) {
  const text = readFileSync(join(root, file), 'utf8');
  const strangers = [...text.matchAll(urlExpression)].map((match) => match[2]);
  const foreign = strangers.filter((url) => !Object.values(neighbours).includes(url));
  if (foreign.length > 0) throw new StepError(`build: ${file} points at files outside dist: ${foreign.join(', ')}`);
  const bare = imports.filter(({ path, external }) => external && !path.startsWith('node:')).map(({ path }) => path);
  const allowed = file === 'dist/worker.js' ? [] : ['apache-arrow'];
  const unknown = bare.filter((path) => !allowed.includes(path) && !isNodeOwn(file, path));
  if (unknown.length > 0) throw new StepError(`build: ${file} imports what nobody brings: ${unknown.join(', ')}`);
}

const isNodeOwn = (file, path) => file === 'dist/node.js' && /^(fs|path|os|url|crypto|worker_threads)(\/|$)/.test(path);

async function emitTypes() {
  const args = [packageBin('typescript', 'tsc'), '-p', 'tsconfig.build.json'];
  const { code, output } = await run(process.execPath, args);
  if (code !== 0) throw new StepError(`build: types:\n${tail(output)}`);
  const types = join(dist, 'types');
  for (const name of readdirSync(types, { recursive: true })) {
    if (name.endsWith('.d.ts')) nameTypesForAll(join(types, name));
  }
}

/** Relative imports get the extension that every kind of module resolution takes. */
function nameTypesForAll(file) {
  const text = readFileSync(file, 'utf8');
  const named = text.replace(/((?:from|import)\s*\(?\s*)(['"])(\.{1,2}\/[^'"]+)\2/g, (whole, before, quote, path) => {
    const stem = path.replace(/\.[jt]s$/, '');
    return existsSync(join(dirname(file), `${stem}.d.ts`)) ? `${before}${quote}${stem}.js${quote}` : whole;
  });
  if (named !== text) writeFileSync(file, named);
}

// ---- web/dist -------------------------------------------------------------------------------------------------------

async function buildWeb() {
  if (!existsSync(join(root, 'web', 'index.html'))) return 'no web/index.html';
  const { code, output } = await run(process.execPath, [packageBin('vite'), 'build'], { env: toolEnv() });
  if (code !== 0) throw new StepError(`build: vite build failed:\n${tail(output)}`);
  return 'web/dist';
}

/** Packages are imported when needed: set-up may have installed them only just now. */
const importPackage = (name) => import(name);

if (isMain(import.meta.url)) {
  await script(async () => {
    const flags = new Set(process.argv.slice(2));
    for (const flag of flags) {
      if (!['--wasm', '--dist', '--web', '--dev'].includes(flag)) throw new StepError(`build: unknown option ${flag}`);
    }
    const isAll = !['--wasm', '--dist', '--web'].some((flag) => flags.has(flag));
    await ensureSetup({ browser: false });
    await build({
      wasm: isAll || flags.has('--wasm'),
      dist: isAll || flags.has('--dist'),
      web: isAll || flags.has('--web'),
      isDev: flags.has('--dev'),
    });
  });
}
