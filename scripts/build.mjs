/**
 * Builds the named targets: `node scripts/build.mjs dist tools`.
 *
 * Compiles, removes what sources that are gone have left behind, and copies data.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { markBuilt, root, target } from './targets.mjs'

const compiler = createRequire(import.meta.url).resolve('typescript/lib/tsc.js')
const output = /(\.d\.ts|\.js)$/

/** @param {string} name */
function build(name) {
  const startedAt = new Date()
  const { folder, projects, copied } = target(name)
  removeOrphans(folder, '')
  const compiled = projects.every(compile)
  for (const data of copied) {
    if (existsSync(join(root, data))) cpSync(join(root, data), join(root, folder, data), { recursive: true })
  }
  if (compiled) markBuilt(name, startedAt)
  return compiled
}

/** @param {string} project @returns {boolean} whether it had no errors */
function compile(project) {
  const { status } = spawnSync(process.execPath, [compiler, '-p', project], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  return status === 0
}

/**
 * Deletes what was made from a source that is gone. The folder isn't emptied first, because running processes
 * may be about to load modules from it.
 * @param {string} folder of the target
 * @param {string} below path inside it
 */
function removeOrphans(folder, below) {
  const path = join(root, folder, below)
  if (!existsSync(path)) return
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    // The stamp and the compiler's notes.
    if (entry.isFile() && below === '') continue
    const inside = join(below, entry.name)
    if (!hasSource(inside)) rmSync(join(path, entry.name), { recursive: true })
    else if (entry.isDirectory()) removeOrphans(folder, inside)
  }
}

/** @param {string} path of a built file or folder, relative to its target's folder */
function hasSource(path) {
  return existsSync(join(root, path)) || existsSync(join(root, path.replace(output, '.ts')))
}

const failed = process.argv.slice(2).filter(name => !build(name))
process.exitCode = failed.length === 0 ? 0 : 1
