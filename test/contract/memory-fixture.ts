import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { MemoryEngine, memoryGuarantees, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import { openMemory } from '../../src/engines/memory/memory-engine.js'
import { startChild } from './child.js'
import { DistantEngine } from './distant-engine.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { Random } from '../../packages/conformance/src/random.js'

/** Runs the process on a space of this name. Returns the token of its lock, and the value that it found. */
async function life(shift: number): Promise<{ token: bigint; before: string | undefined }> {
  using child = startChild('build/test/contract/life', 'memory:the same', String(shift))
  const { status, stdout, stderr } = await child.end()
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const { token, before } = JSON.parse(stdout) as { token: string; before?: string }
  return { token: BigInt(token), before }
}

/** Counts the entries of all maps of a space. */
function sizeOf({ state }: MemorySpace): number {
  const parts = Object.values(JSON.parse(state.save()) as Record<string, unknown>)
  return parts.reduce<number>((sum, part) => sum + (Array.isArray(part) ? part.length : 0), 0)
}

/** The memory engine, which replies immediately. */
export const memory: EngineFixture = {
  name: 'memory',
  guarantees: memoryGuarantees,
  network: 'none',
  weaknesses: {
    async P2() {
      const first = await life(0)
      const later = await life(0)
      const setBack = await life(-3_600_000)
      expect(later.token).toBeGreaterThan(first.token)
      expect(setBack.token).toBeLessThan(first.token)
    },
    async P13() {
      await life(0)
      expect((await life(0)).before).toBeUndefined()
    },
  },
  start() {
    const url = `memory:${randomUUID()}`
    const space = new MemorySpace(systemClock)
    return {
      url,
      engine: () => new MemoryEngine(url, space, systemClock),
      size: () => sizeOf(space),
      close: () => undefined,
    }
  },
}

/** The memory engine with delays, which represents every engine with a server. */
export const distantMemory: EngineFixture = {
  ...memory,
  name: 'memory at a distance',
  start() {
    const url = `memory:${randomUUID()}`
    let boxes = 0
    return {
      url,
      engine: () => new DistantEngine(openMemory(url), new Random(boxes++)),
      close: () => undefined,
    }
  },
}
