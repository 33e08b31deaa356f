import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Builds the programs in other languages, unless they are up to date.
 * @throws Error if a program can't be built, after printing what is missing
 */
export default function bringUpToDate(): void {
  const setup = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [setup, 'interop'], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the programs in other languages can not be built, see above')
}
