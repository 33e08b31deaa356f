/** Compiles the sources: for running, and for a package. */
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
 * What the compiler makes from a folder of sources.
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
 * What `npm pack` packs, by its target: the folder of the package.
 * @type {ReadonlyMap<string, string>}
 */
const packages = new Map([
  ['package', '.'],
  ['conformance-package', 'packages/conformance'],
  ['hazelcast-package', 'packages/hazelcast'],
  ['lockfile-package', 'packages/lockfile'],
  ['zookeeper-package', 'packages/zookeeper'],
  ['nestjs-package', 'packages/nestjs'],
])

/** What can be built. */
export const targets = [...new Set(outputs.map(({ target }) => target)), ...packages.keys()]

/**
 * Brings targets up to date.
 * @param {readonly string[]} names
 * @throws {import('./command.mjs').SetupError} when a source can't be compiled
 */
export function build(names) {
  const wanted = outputs.filter(({ target }) => names.includes(target))
  for (const output of wanted) {
    if (existsSync(join(root, output.folder))) removeOrphans(output)
    else process.stderr.write(`setup: preparing ${output.folder}/ ...\n`)
  }
  // In its build mode it finds by itself what has changed.
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
 * Copies what the compiler leaves out: SQL and Lua.
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
 * Writes the files that CommonJS requires. In a packed package they are the code itself. In a clone they pass the modules
 * on, so that there is one copy, too.
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

/** @param {...string} argv of the compiler */
function compile(...argv) {
  run(process.execPath, [require.resolve('typescript/lib/tsc.js'), ...argv])
}

/**
 * Deletes what was made from a source that is gone, because the compiler leaves it, and what was made for a package.
 * The folder isn't emptied, because running processes may be about to load modules from it.
 * @param {Output} output
 */
function removeOrphans({ folder, sources }) {
  const made = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  for (const file of made.filter(file => /\.(js|d\.ts)$/.test(file))) {
    const source = join(root, sources, file.replace(/\.js$/, '.ts'))
    if (!existsSync(source)) rmSync(join(root, folder, file))
  }
}
