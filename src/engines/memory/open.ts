import { systemClock } from '../../base/clock.js'
import { InvalidArgumentError, shown } from '../../base/errors.js'
import { MemoryEngine, MemorySpace } from './memory-engine.js'

/** The spaces by name. They live as long as the thread, because another box may open the same name later. */
const spaces = new Map<string, MemorySpace>()

/**
 * Returns the engine of a `memory:` URL. The text after the colon is the name of a space that several boxes share.
 * @throws InvalidArgumentError if the URL has parameters
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
