import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from '../run-program.js'

const cache = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))

/** Returns the path of Node in this major version: the running one, or one that is installed once and kept. */
export async function nodeOf(major: number): Promise<string> {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath
  const folder = join(cache, `node-${major}`)
  const program = join(folder, 'node_modules/node/bin/node')
  if (existsSync(program)) return program
  // Written under another name and moved when it is complete, so that no process finds half of it.
  const fresh = join(cache, `node-${major}-${process.pid}`)
  mkdirSync(fresh, { recursive: true })
  writeFileSync(join(fresh, 'package.json'), '{ "private": true }')
  const argv = [
    'install',
    `node@${major}`,
    '--no-audit',
    '--no-fund',
    '--ignore-scripts=false',
    '--loglevel=error',
  ]
  await runProgram('npm', argv, { cwd: fresh, timeLimit: 300_000 })
  try {
    renameSync(fresh, folder)
  } catch (error) {
    // Another process was quicker.
    rmSync(fresh, { recursive: true })
    if (!existsSync(program)) throw error
  }
  return program
}
