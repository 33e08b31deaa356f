import type { Box } from '../../src/box.js'
import type { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import type { IndeterminateError, UnavailableError } from '../../src/base/errors.js'
import { mutatedCopy } from './mutated-copy.js'
import type { SimulatedMutant } from './mutants.js'
import type { Sources } from '../simulation/sources.js'

const ENTRIES = ['src/box.ts', 'src/engines/memory/memory-engine.ts', 'src/base/errors.ts']

/**
 * Copies the sources with a mutant in them to a temporary folder that `remove` deletes.
 * @throws Error unless exactly one comment names the mutant and one of the copied files contains it
 */
export async function mutatedSources(
  mutant: SimulatedMutant,
): Promise<{ sources: Sources; remove: () => void }> {
  const { load, remove } = mutatedCopy(mutant, ENTRIES)
  const { Box: MutatedBox } = (await load('src/box.js')) as { Box: typeof Box }
  const engine = (await load('src/engines/memory/memory-engine.js')) as {
    MemoryEngine: typeof MemoryEngine
    MemorySpace: typeof MemorySpace
  }
  const errors = (await load('src/base/errors.js')) as {
    IndeterminateError: typeof IndeterminateError
    UnavailableError: typeof UnavailableError
  }
  return { sources: { Box: MutatedBox, ...engine, ...errors }, remove }
}
