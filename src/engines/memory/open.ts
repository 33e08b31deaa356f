import { systemClock } from '../../clock.js'
import { MemoryEngine, MemorySpace } from './memory-engine.js'

/** The spaces with a name. One lives as long as its thread: its state may be asked for again. */
const spaces = new Map<string, MemorySpace>()

/** The engine of a `memory:` URL; what follows the colon names a space that several boxes share. */
export function openMemory(url: string): MemoryEngine {
  const name = url.slice('memory:'.length)
  let space = spaces.get(name)
  if (!space) {
    space = new MemorySpace(systemClock)
    if (name !== '') spaces.set(name, space)
  }
  return new MemoryEngine(url, space, systemClock)
}
