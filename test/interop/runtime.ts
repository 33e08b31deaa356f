import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { builtFolder } from '../../scripts/interop.mjs'
import type { Program } from './programs.js'

/** Runtimes other than this one, each with its scope in npm, its program there, and the arguments before a script. */
const RUNTIMES = {
  Bun: { scope: '@oven', path: 'bin/bun', argv: [] },
  Deno: { scope: '@deno', path: 'deno', argv: ['run', '--allow-all'] },
  'Node 24': { scope: '@node', path: 'bin/node', argv: [] },
} as const

export type Runtime = keyof typeof RUNTIMES

/**
 * Returns a script in a runtime that `scripts/setup.mjs runtimes` has installed.
 * @param script path of the script
 * @param options options of the runtime
 */
export function runtime(name: Runtime, script: string, options: readonly string[] = []): Program {
  const { scope, path, argv } = RUNTIMES[name]
  const folder = join(builtFolder, 'runtimes/node_modules', scope)
  // The package of this platform, which is the only one that npm installs.
  const [platform] = readdirSync(folder)
  return { program: join(folder, platform!, path), argv: [...argv, ...options, script] }
}
