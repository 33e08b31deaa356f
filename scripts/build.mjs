/** Compiles the sources in the build mode of the compiler, which finds by itself what has changed. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './command.mjs'

/**
 * What can be built: the folder it goes to, and the project of the compiler that makes it.
 * @type {ReadonlyMap<string, { folder: string, project: string }>}
 */
export const targets = new Map([
  ['dist', { folder: 'dist', project: 'tsconfig.build.json' }],
  ['types', { folder: 'dist', project: 'tsconfig.types.json' }],
  ['tools', { folder: 'build', project: 'tsconfig.tools.json' }],
])

/**
 * Brings the targets up to date.
 * @param {readonly string[]} names of targets
 * @throws {import('./command.mjs').SetupError} when a source can't be compiled
 */
export function build(names) {
  const wanted = [...targets].filter(([name]) => names.includes(name)).map(([, target]) => target)
  for (const { folder } of wanted) {
    if (existsSync(join(root, folder))) removeOrphans(folder)
    else process.stderr.write(`setup: preparing ${folder}/ ...\n`)
  }
  const compiler = join(root, 'node_modules/typescript/lib/tsc.js')
  run(process.execPath, [compiler, '--build', ...wanted.map(({ project }) => project)])
}

/**
 * Deletes what was made from a source that is gone, because the compiler leaves it. The folder isn't emptied, because
 * running processes may be about to load modules from it.
 * @param {string} folder of a target
 */
function removeOrphans(folder) {
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    const [, module] = /^(.+?)(\.d\.ts|\.js)$/.exec(file) ?? []
    if (module !== undefined && !existsSync(join(root, `${module}.ts`))) rmSync(join(root, folder, file))
  }
}
