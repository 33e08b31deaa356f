import type { ModulesContainer } from '@nestjs/core'
import type { Box } from 'signalbox'

/**
 * Calls a function when the application begins to shut down, before any module waits for requests. Nest shuts modules
 * down one after the other, and global ones last, so the hook belongs to the first: the root module.
 */
export function atShutdown(modules: ModulesContainer, task: () => void): void {
  const first = [...modules.values()].reduce((one, other) => (other.distance <= one.distance ? other : one))
  first.addProvider({ provide: Symbol('signalbox:shutdown'), useValue: { onModuleDestroy: task } })
}

/** Returns the boxes that factories of the application have opened. */
export function openedBoxes(modules: ModulesContainer): readonly Box[] {
  const providers = [...modules.values()].flatMap(module => [...module.providers.values()])
  return providers.flatMap(({ isFactory, instance }) => (isFactory && isBox(instance) ? [instance] : []))
}

/** Whether it is a box, or one of a test, and not a mock. */
export function isBox(instance: unknown): instance is Box {
  try {
    const { engine, session, mutex, close } = (instance ?? {}) as Partial<Box>
    // Some mocks have a function by every name.
    const isNamed = [engine, session].every(name => typeof name === 'string')
    return isNamed && [mutex, close].every(method => typeof method === 'function')
  } catch {
    // Some proxies throw for a name that they do not know.
    return false
  }
}
