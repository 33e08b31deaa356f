import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Brings dist/ and build/ up to date before tests that start processes, so that none of them runs old code.
 * A type error doesn't stop it, because code is emitted all the same and the type check reports the error.
 */
export default function bringUpToDate(): void {
  const setup = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url))
  spawnSync(process.execPath, [setup, 'dist', 'tools'], { stdio: ['ignore', 2, 2] })
}
