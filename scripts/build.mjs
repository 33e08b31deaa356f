/** Compiles the sources: for running, and for a package. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
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
export const targets = [...programs.keys(), 'types']

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
  if (names.includes('types')) writeDeclarations()
}

/** @param {...string} argv of the compiler */
function compile(...argv) {
  run(process.execPath, [require.resolve('typescript/lib/tsc.js'), ...argv])
}

/**
 * Deletes what was made from a source that is gone, because the compiler leaves it. The folder isn't emptied, because
 * running processes may be about to load modules from it.
 * @param {string} folder
 */
function removeOrphans(folder) {
  for (const [path, source] of compiled(folder)) if (!existsSync(source)) rmSync(path)
}

/** Writes the declarations, and deletes those that no entry of the package leads to: no editor reads them. */
function writeDeclarations() {
  compile('--project', 'tsconfig.types.json')
  /** @type {{ exports: Record<string, { types?: string }> }} */
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  /** @type {Set<string>} */
  const read = new Set()
  for (const { types } of Object.values(exports)) if (types !== undefined) follow(join(root, types), read)
  for (const [path] of compiled('dist')) if (path.endsWith('.d.ts') && !read.has(path)) rmSync(path)
}

/**
 * Adds a declaration file, and all that it imports of this package.
 * @param {string} path
 * @param {Set<string>} read
 */
function follow(path, read) {
  if (read.has(path)) return
  read.add(path)
  /** @type {import('typescript')} */
  const { preProcessFile } = require('typescript')
  for (const { fileName } of preProcessFile(readFileSync(path, 'utf8')).importedFiles)
    if (fileName.startsWith('.')) follow(join(dirname(path), fileName.replace(/\.js$/, '.d.ts')), read)
}

/**
 * @param {string} folder
 * @returns {[path: string, source: string][]} each file in it that was compiled, and what from
 */
function compiled(folder) {
  const suffix = /(\.d\.ts|\.js)$/
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => suffix.test(file))
    .map(file => [join(root, folder, file), join(root, file.replace(suffix, '.ts'))])
}
