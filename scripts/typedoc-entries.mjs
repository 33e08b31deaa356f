/** A plugin for TypeDoc that names the modules as users import them, `signalbox/limits`, and not by their files. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './command.mjs'

/** @type {{ exports: Record<string, { types?: string }> }} */
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/**
 * The entries of the package: the source of each without its extension, and the name that users import.
 * @type {ReadonlyMap<string, string>}
 */
export const entries = new Map(
  Object.entries(exports).flatMap(([path, { types }]) => {
    const source = types?.match(/^\.\/dist\/(.*)\.d\.ts$/)?.[1]
    return source === undefined ? [] : [[source, path.replace('.', 'signalbox')]]
  }),
)

/**
 * @typedef {{ name: string }} Module
 * @typedef {{ project: { children?: Module[] } }} Context
 * @param {{ converter: { on: (event: 'resolveBegin', listener: (context: Context) => void) => void } }} application
 */
export function load({ converter }) {
  converter.on('resolveBegin', ({ project }) => {
    for (const module of project.children ?? []) {
      const name = entries.get(module.name) ?? entries.get(`${module.name}/index`)
      if (name === undefined) throw new Error(`${module.name} is not an entry of the package`)
      module.name = name
    }
  })
}
