import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Brings the programs in other languages up to date.
 * @throws Error when one can't be built, after the missing programs were printed
 */
export default function bringUpToDate(): void {
  const setup = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [setup, 'interop'], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the programs in other languages can not be built, see above')
}
