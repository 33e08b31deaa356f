import { Box } from '../../src/box.js'
import { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import { IndeterminateError, UnavailableError } from '../../src/base/errors.js'

/** The parts of the sources that the simulation uses, so that it can also run on a changed copy of them. */
export interface Sources {
  readonly Box: Pick<typeof Box, 'join'>
  readonly MemoryEngine: typeof MemoryEngine
  readonly MemorySpace: typeof MemorySpace
  readonly IndeterminateError: typeof IndeterminateError
  readonly UnavailableError: typeof UnavailableError
}

/** The unchanged sources. */
export const sources: Sources = { Box, MemoryEngine, MemorySpace, IndeterminateError, UnavailableError }
