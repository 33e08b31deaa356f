import type { Box } from '../../src/box.js'
import type { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import type { IndeterminateError, UnavailableError } from '../../src/errors.js'
import { faultyCopy } from './faulty-copy.js'
import type { Fault } from './faults.js'
import type { Sources } from './sources.js'

const ENTRIES = ['box.ts', 'engines/memory/memory-engine.ts', 'errors.ts']

/**
 * A copy of the sources with a mistake in them, in a temporary folder that `remove` deletes.
 * @throws Error when not exactly one comment names the mistake, or when it is in none of the files that were copied
 */
export async function faultySources(fault: Fault): Promise<{ sources: Sources; remove: () => void }> {
  const { load, remove } = faultyCopy(fault, ENTRIES)
  const { Box: FaultyBox } = (await load('box.js')) as { Box: typeof Box }
  const engine = (await load('engines/memory/memory-engine.js')) as {
    MemoryEngine: typeof MemoryEngine
    MemorySpace: typeof MemorySpace
  }
  const errors = (await load('errors.js')) as {
    IndeterminateError: typeof IndeterminateError
    UnavailableError: typeof UnavailableError
  }
  return { sources: { Box: FaultyBox, ...engine, ...errors }, remove }
}
