/** The two things built from the sources, and how to tell whether they are up to date. */
import { readdirSync, statSync, writeFileSync, utimesSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * `folder`: where the result goes. `projects`: the TypeScript projects that make it, one after the other.
 * `sources`: folders and files it is made from. `copied`: folders of data that go along unchanged.
 * @typedef {{ folder: string, projects: string[], sources: string[], copied: string[] }} Target
 */

const shared = ['package.json', 'tsconfig.base.json', 'scripts', 'src', 'apps']

/** @type {ReadonlyMap<string, Target>} */
export const targets = new Map([
  [
    'dist',
    {
      folder: 'dist',
      projects: ['tsconfig.types.json', 'tsconfig.build.json'],
      sources: shared,
      copied: ['apps/trains/data'],
    },
  ],
  [
    'tools',
    {
      folder: 'build',
      projects: ['tsconfig.tools.json'],
      sources: [...shared, 'bench', 'test'],
      copied: [],
    },
  ],
])

/** @param {string} name */
export function target(name) {
  const found = targets.get(name)
  if (found === undefined)
    throw new Error(`Unknown target '${name}'; there are ${[...targets.keys()].join(', ')}.`)
  return found
}

/**
 * Whether a source has changed since the target was last marked built.
 * @param {string} name
 */
export function isStale(name) {
  const { folder, projects, sources } = target(name)
  const built = modified(join(root, folder, '.built'))
  return built === undefined || [...projects, ...sources].some(source => newest(join(root, source)) > built)
}

/**
 * Marks a target as built from what the sources were at `startedAt`.
 * @param {string} name
 * @param {Date} startedAt when the build began: whatever changed during it makes the target stale again
 */
export function markBuilt(name, startedAt) {
  const stamp = join(root, target(name).folder, '.built')
  writeFileSync(stamp, '')
  utimesSync(stamp, startedAt, startedAt)
}

/**
 * @param {string} path
 * @returns {number} the latest change at or below the path in ms since the epoch, 0 when there is nothing.
 * Folders count too: a deleted file shows only there.
 */
function newest(path) {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 0
  let latest = stats.mtimeMs
  if (stats.isDirectory())
    for (const name of readdirSync(path)) latest = Math.max(latest, newest(join(path, name)))
  return latest
}

/** @param {string} path */
function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs
}
