import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { builtFolder } from '../../scripts/interop.mjs'
import type { Program } from './programs.js'

/**
 * The runtimes other than this one, by the folder of their programs, with what comes before the program that they are to
 * run.
 */
const RUNTIMES = {
  Bun: { scope: '@oven', path: 'bin/bun', argv: [] },
  Deno: { scope: '@deno', path: 'deno', argv: ['run', '--allow-all'] },
  'Node 24': { scope: '@node', path: 'bin/node', argv: [] },
} as const

export type Runtime = keyof typeof RUNTIMES

/**
 * A runtime as `scripts/setup.mjs runtimes` has installed it.
 * @param script a program for it
 * @param options for the runtime, before the program
 */
export function runtime(name: Runtime, script: string, options: readonly string[] = []): Program {
  const { scope, path, argv } = RUNTIMES[name]
  const folder = join(builtFolder, 'runtimes/node_modules', scope)
  // The package of this platform, the only one that npm installs.
  const [platform] = readdirSync(folder)
  return { program: join(folder, platform!, path), argv: [...argv, ...options, script] }
}
