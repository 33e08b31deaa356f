import { describe, expect, test } from 'vitest'
import { conformance } from '../../packages/conformance/src/index.js'
import {
  FaultInjectingEngine,
  type Intercept,
} from '../../packages/conformance/src/fault-injecting-engine.js'
import type { RequestStatus } from '../../src/engine/contract.js'
import { distantMemory } from './memory-fixture.js'

/** The memory engine with a mistake in it. */
function mistaken(intercept: Intercept): typeof distantMemory {
  return {
    ...distantMemory,
    async start() {
      const place = await distantMemory.start()
      return {
        ...place,
        async engine() {
          const engine = new FaultInjectingEngine(await place.engine())
          engine.intercept = intercept
          return engine
        },
      }
    },
  }
}

const honest: Intercept = (_, execute) => execute()

/** Each a mistake, and a check that is about what it breaks. */
const mistakes: readonly (readonly [what: string, check: string, intercept: Intercept])[] = [
  [
    'grants a held lock',
    'P1 mutual exclusion > a mutex has one holder at a time, and each later holder has a greater token',
    async (operation, execute) => {
      const outcome = await execute()
      if (operation.type !== 'enqueue' || (outcome as RequestStatus).state !== 'queued') return outcome
      return { state: 'held', id: operation.request.id, number: Date.now() }
    },
  ],
  [
    'lets two sets of keys overlap',
    'P1 mutual exclusion > sets of keys exclude each other only where they overlap',
    async (operation, execute) => {
      const outcome = await execute()
      if (operation.type !== 'enqueue' || (outcome as RequestStatus).state !== 'busy') return outcome
      return { state: 'held', id: operation.request.id, number: Date.now() }
    },
  ],
  [
    'gives all grants the same number',
    'P2 tokens increase > tokens increase after all boxes were closed and new ones opened',
    async (operation, execute) => {
      const outcome = await execute()
      const held = operation.type === 'enqueue' && (outcome as RequestStatus).state === 'held'
      return held ? { ...(outcome as RequestStatus & { state: 'held' }), number: 1 } : outcome
    },
  ],
  [
    'keeps nothing',
    'P13 commits are atomic and durable > values > any box reads a value as it was written, and every write has a new version',
    async (operation, execute) =>
      operation.type === 'commit'
        ? { state: 'committed', versions: operation.writes.map((_, index) => index + 1) }
        : execute(),
  ],
  [
    'says that it released what was gone',
    'P7 a release affects only its own grant > a release that finds the grant gone rejects with a LostError, and is published as a loss',
    async (operation, execute) => {
      const outcome = await execute()
      return operation.type === 'release' ? true : outcome
    },
  ],
]

describe.concurrent('the conformance kit rejects an engine that', () => {
  const check = async (name: string, intercept: Intercept): Promise<void> => {
    const found = conformance(mistaken(intercept)).find(one => one.name === name)
    if (!found) throw new Error(`there is no check ${name}`)
    await found.run()
  }

  test.each(mistakes)('%s', async (_, name, intercept) => {
    await check(name, honest)
    await expect(check(name, intercept)).rejects.toThrow()
  })
})
