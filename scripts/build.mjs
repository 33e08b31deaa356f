/** Compiles the sources: for running, and for a package. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { root, run } from './command.mjs'

const require = createRequire(import.meta.url)

/**
 * What the compiler makes in its build mode, in which it finds by itself what has changed.
 * @type {ReadonlyMap<string, { folder: string, project: string }>}
 */
const programs = new Map([
  ['dist', { folder: 'dist', project: 'tsconfig.build.json' }],
  ['tools', { folder: 'build', project: 'tsconfig.tools.json' }],
])

/** What can be built. */
export const targets = [...programs.keys(), 'package']

/**
 * Brings targets up to date.
 * @param {readonly string[]} names
 * @throws {import('./command.mjs').SetupError} when a source can't be compiled
 */
export function build(names) {
  const wanted = [...programs].filter(([name]) => names.includes(name)).map(([, program]) => program)
  for (const { folder } of wanted) {
    if (existsSync(join(root, folder))) removeOrphans(folder)
    else process.stderr.write(`setup: preparing ${folder}/ ...\n`)
  }
  if (wanted.length > 0) compile('--build', ...wanted.map(({ project }) => project))
  for (const { folder } of wanted) copySql(folder)
  if (names.includes('package')) run(process.execPath, ['scripts/bundle.mjs'])
}

/**
 * Copies what the compiler leaves out: SQL.
 * @param {string} folder
 */
function copySql(folder) {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  for (const file of sources.filter(file => file.endsWith('.sql'))) {
    const copy = join(root, folder, 'src', file)
    mkdirSync(dirname(copy), { recursive: true })
    copyFileSync(join(root, 'src', file), copy)
  }
}

/** @param {...string} argv of the compiler */
function compile(...argv) {
  run(process.execPath, [require.resolve('typescript/lib/tsc.js'), ...argv])
}

/**
 * Deletes what was made from a source that is gone, because the compiler leaves it, and what was made for a package.
 * The folder isn't emptied, because running processes may be about to load modules from it.
 * @param {string} folder
 */
function removeOrphans(folder) {
  const made = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  for (const file of made.filter(file => /\.(js|d\.ts)$/.test(file))) {
    const source = join(root, file.replace(/\.js$/, '.ts'))
    if (!existsSync(source)) rmSync(join(root, folder, file))
  }
}
