import { systemClock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { MemoryEngine, MemorySpace } from './memory-engine.js'

/** The spaces with a name. One lives as long as its thread: its state may be asked for again. */
const spaces = new Map<string, MemorySpace>()

/**
 * The engine of a `memory:` URL; what follows the colon names a space that several boxes share.
 * @throws InvalidArgumentError when it has parameters.
 */
export function openMemory(url: string): MemoryEngine {
  const name = url.slice('memory:'.length)
  if (name.includes('?')) {
    throw new InvalidArgumentError(
      `a memory: URL must not have parameters, or "?" in its name: ${shown(url)}`,
    )
  }
  let space = spaces.get(name)
  if (!space) {
    space = new MemorySpace(systemClock)
    if (name !== '') spaces.set(name, space)
  }
  return new MemoryEngine(url, space, systemClock)
}
