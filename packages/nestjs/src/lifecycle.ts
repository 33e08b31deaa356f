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

function isBox(instance: unknown): instance is Box {
  const { mutex, oncePer, close } = (instance ?? {}) as Partial<Box>
  return [mutex, oncePer, close].every(method => typeof method === 'function')
}
