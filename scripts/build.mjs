/** Compiles the sources, and builds the packages for `npm pack`. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { root, run } from './command.mjs'

const require = createRequire(import.meta.url)

/**
 * The output of the compiler for a folder of sources.
 * @typedef {{ target: string, folder: string, sources: string, project: string }} Output
 */

/** @type {readonly Output[]} */
const outputs = [
  { target: 'dist', folder: 'dist', sources: '.', project: 'tsconfig.build.json' },
  {
    target: 'dist',
    folder: 'packages/conformance/dist',
    sources: 'packages/conformance/src',
    project: 'packages/conformance/tsconfig.build.json',
  },
  {
    target: 'dist',
    folder: 'packages/console/dist',
    sources: 'packages/console/src',
    project: 'packages/console/tsconfig.build.json',
  },
  {
    target: 'dist',
    folder: 'packages/hazelcast/dist',
    sources: 'packages/hazelcast/src',
    project: 'packages/hazelcast/tsconfig.build.json',
  },
  {
    target: 'dist',
    folder: 'packages/lockfile/dist',
    sources: 'packages/lockfile/src',
    project: 'packages/lockfile/tsconfig.build.json',
  },
  {
    target: 'dist',
    folder: 'packages/redis-quorum/dist',
    sources: 'packages/redis-quorum/src',
    project: 'packages/redis-quorum/tsconfig.build.json',
  },
  {
    target: 'dist',
    folder: 'packages/zookeeper/dist',
    sources: 'packages/zookeeper/src',
    project: 'packages/zookeeper/tsconfig.build.json',
  },
  {
    target: 'dist',
    folder: 'packages/nestjs/dist',
    sources: 'packages/nestjs/src',
    project: 'packages/nestjs/tsconfig.build.json',
  },
  { target: 'tools', folder: 'build', sources: '.', project: 'tsconfig.tools.json' },
]

/**
 * The folder of each package that `npm pack` packs, by its target.
 * @type {ReadonlyMap<string, string>}
 */
const packages = new Map([
  ['package', '.'],
  ['conformance-package', 'packages/conformance'],
  ['console-package', 'packages/console'],
  ['hazelcast-package', 'packages/hazelcast'],
  ['lockfile-package', 'packages/lockfile'],
  ['redis-quorum-package', 'packages/redis-quorum'],
  ['zookeeper-package', 'packages/zookeeper'],
  ['nestjs-package', 'packages/nestjs'],
])

/** The names of all targets. */
export const targets = [...new Set(outputs.map(({ target }) => target)), ...packages.keys()]

/**
 * Builds targets, unless they are up to date.
 * @param {readonly string[]} names
 * @throws {import('./command.mjs').SetupError} if a source does not compile
 */
export function build(names) {
  const wanted = outputs.filter(({ target }) => names.includes(target))
  for (const output of wanted) {
    if (existsSync(join(root, output.folder))) removeOrphans(output)
    else process.stderr.write(`setup: preparing ${output.folder}/ ...\n`)
  }
  // In its build mode, the compiler compiles only the projects that have changed.
  if (wanted.length > 0) compile('--build', ...wanted.map(({ project }) => project))
  for (const { folder, sources } of wanted) if (sources === '.') copyTexts(folder)
  if (names.includes('dist')) {
    for (const folder of packages.values()) writeRequired(folder)
    run(process.execPath, ['scripts/page.mjs'])
  }
  for (const [name, folder] of packages)
    if (names.includes(name)) run(process.execPath, ['scripts/bundle.mjs', folder])
}

/**
 * Copies SQL and Lua, which the compiler ignores.
 * @param {string} folder
 */
function copyTexts(folder) {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  for (const file of sources.filter(file => /\.(sql|lua)$/.test(file))) {
    const copy = join(root, folder, 'src', file)
    mkdirSync(dirname(copy), { recursive: true })
    copyFileSync(join(root, 'src', file), copy)
  }
}

/**
 * Writes the modules that CommonJS requires in a clone. Each re-exports the ES module, so that a process has one copy
 * of it. In a package, they contain the code itself.
 * @param {string} folder of a package
 */
function writeRequired(folder) {
  /** @type {{ exports: Record<string, { require?: { default: string } }> }} */
  const { exports } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  for (const { require: required } of Object.values(exports)) {
    if (!required) continue
    const path = join(root, folder, required.default)
    writeFileSync(path, `module.exports = require('./${basename(path, '.cjs')}.js')\n`)
  }
}

/** @param {...string} argv arguments of the compiler */
function compile(...argv) {
  run(process.execPath, [require.resolve('typescript/lib/tsc.js'), ...argv])
}

/**
 * Deletes files that have no source: the compiler does not delete them, and some belong to a package. Does not empty
 * the folder, because running processes may be about to load modules from it.
 * @param {Output} output
 */
function removeOrphans({ folder, sources }) {
  const made = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  for (const file of made.filter(file => /\.(js|d\.ts)$/.test(file))) {
    const source = join(root, sources, file.replace(/\.js$/, '.ts'))
    if (!existsSync(source)) rmSync(join(root, folder, file))
  }
}
