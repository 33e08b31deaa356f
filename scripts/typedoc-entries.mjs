/** A plugin for TypeDoc that gives modules the names that users import, such as `signalbox/limits`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './command.mjs'

/**
 * The entry points of the packages: the source of each without its extension, and the name that users import.
 * @type {ReadonlyMap<string, string>}
 */
export const entries = new Map([
  ...entriesOf('.', '.'),
  ...entriesOf('packages/console', 'src'),
  ...entriesOf('packages/hazelcast', 'src'),
  ...entriesOf('packages/lockfile', 'src'),
  ...entriesOf('packages/redis-quorum', 'src'),
  ...entriesOf('packages/zookeeper', 'src'),
  ...entriesOf('packages/conformance', 'src'),
  ...entriesOf('packages/nestjs', 'src'),
])

/**
 * @param {string} folder folder of a package
 * @param {string} sources folder of its sources, which has the same structure as `dist`
 * @returns {[source: string, name: string][]}
 */
function entriesOf(folder, sources) {
  /** @type {{ name: string, exports: Record<string, { types?: string, import?: { types?: string } }> }} */
  const { name, exports } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  return Object.entries(exports).flatMap(([path, { types, import: module }]) => {
    const entry = (types ?? module?.types)?.match(/^\.\/dist\/(.*)\.d\.ts$/)?.[1]
    return entry === undefined ? [] : [[join(folder, sources, entry), path.replace('.', name)]]
  })
}

/**
 * @typedef {{ name: string }} Module
 * @typedef {{ project: { children?: Module[] } }} Context
 * @param {{ converter: { on: (event: 'resolveBegin', listener: (context: Context) => void) => void } }} application
 */
export function load({ converter }) {
  converter.on('resolveBegin', ({ project }) => {
    for (const module of project.children ?? []) {
      const name = entries.get(module.name) ?? entries.get(`${module.name}/index`)
      if (name === undefined) throw new Error(`${module.name} is not an entry of a package`)
      module.name = name
    }
  })
}
